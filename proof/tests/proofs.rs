//! Every proof in its short form, side by side: a thread each.

use proof::{Effort, proofs, run};

#[test]
fn everything_claimed_is_so() {
    let wrong: Vec<String> = std::thread::scope(|scope| {
        let all: Vec<_> = proofs()
            .into_iter()
            .map(|proof| {
                scope.spawn(move || {
                    let claims = run(&proof, Effort::Short);
                    assert!(!claims.is_empty(), "{} claims nothing", proof.name);
                    claims
                        .into_iter()
                        .filter(|claim| !claim.is_right(Effort::Short))
                        .map(|claim| format!("{}: {claim:?}", proof.name))
                        .collect::<Vec<_>>()
                })
            })
            .collect();
        all.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
