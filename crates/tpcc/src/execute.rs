//! Executes an input as a transaction: begin, work, commit; again where the engine asks for it.

use crate::dialect::{Dialect, Statement};
use crate::input::Input;
use crate::session::{ErrorClass, Intent, Session};
use crate::statements::QUERIES;
use crate::transactions::{Shown, intent, work};
use crate::value::Seconds;
use crate::work::{TransactionError, Tried};

/// How often a transaction may be repeated with the same input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repeats(pub u32);

/// What came of an input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Execution {
    /// How the last try ended.
    pub ending: Ending,
    /// The tries before it, by why the engine wanted another.
    pub repeated: Vec<ErrorClass>,
}

/// How a transaction ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Committed.
    Committed(Shown),
    /// Rolled back as its input wants: an order with an unused item number.
    RolledBack,
    /// Neither: an error that is not to be repeated, or the last repeat failed too.
    Failed(TransactionError),
}

/// The statements to prepare before [`execute`].
pub fn statements(dialect: Dialect) -> Vec<Statement> {
    dialect.statements(QUERIES)
}

/// Executes one input on a session that has prepared [`statements`].
///
/// `now` is written as the date of an order, a payment or a delivery. After [`ErrorClass::Gone`] the
/// session is of no more use.
pub fn execute(
    session: &mut dyn Session,
    input: &Input,
    now: Seconds,
    repeats: Repeats,
) -> Execution {
    let (ended, repeated) =
        repeat(session, intent(input), repeats, |session| work(session, input, now));
    let ending = match ended {
        Ok(Some(shown)) => Ending::Committed(shown),
        Ok(None) => Ending::RolledBack,
        Err(fault) => Ending::Failed(fault),
    };
    Execution { ending, repeated }
}

/// Begins, has the work done, and commits; once more where the engine asks for it. Work without a result
/// is rolled back.
pub(crate) fn repeat<T>(
    session: &mut dyn Session,
    intent: Intent,
    repeats: Repeats,
    work: impl Fn(&mut dyn Session) -> Tried<Option<T>>,
) -> (Tried<Option<T>>, Vec<ErrorClass>) {
    let mut repeated = Vec::new();
    loop {
        let fault = match attempt(session, intent, &work) {
            Ok(done) => return (Ok(done), repeated),
            Err(fault) => fault,
        };
        if !fault.class().is_retryable() || repeated.len() >= repeats.0 as usize {
            return (Err(fault), repeated);
        }
        repeated.push(fault.class());
    }
}

fn attempt<T>(
    session: &mut dyn Session,
    intent: Intent,
    work: impl Fn(&mut dyn Session) -> Tried<Option<T>>,
) -> Tried<Option<T>> {
    let tried = session.begin(intent).map_err(TransactionError::from).and_then(|()| {
        let done = work(session)?;
        if done.is_some() {
            session.commit()?;
        }
        Ok(done)
    });
    if !matches!(tried, Ok(Some(_))) {
        session.rollback()?;
    }
    tried
}
