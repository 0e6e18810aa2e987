//! Which servers there are, and what is looked at before one is started.

use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use units::Bytes;

use crate::named::{self, Looked, OwnDatabase, ServedLoad, ServerUrl};
use crate::place::{self, Place};
use crate::server::{Base, Home, Server};
use crate::site::{Kit, Site};
use crate::{DbError, mariadb, postgres, sqlite};

/// How long the drop of a database is tried.
const DROP_PATIENCE: Duration = Duration::from_secs(5);

/// A database that commits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Engine {
    /// A PostgreSQL server.
    Postgres,
    /// A MariaDB server, with InnoDB tables.
    Mariadb,
    /// SQLite, which runs in this process.
    Sqlite,
}

impl Engine {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Postgres, Self::Mariadb, Self::Sqlite];

    /// As the operator writes it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Postgres => "postgres",
            Self::Mariadb => "mariadb",
            Self::Sqlite => "sqlite",
        }
    }

    /// By its name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|engine| engine.name() == name)
    }

    /// What it writes before the first row is asked for, room for rows included, and its log.
    fn needs(self) -> (Bytes, Bytes) {
        match self {
            // 39 MiB as made; the log grows to `max_wal_size` and some segments over it.
            Self::Postgres => (Bytes::mib(320), Bytes::mib(1280)),
            // 140 MiB as made, undo and temporary tables among it; the log is one file of fixed size.
            Self::Mariadb => (Bytes::mib(448), Bytes::mib(128)),
            Self::Sqlite => (Bytes::mib(256), Bytes::mib(64)),
        }
    }

    /// The smallest page cache that it takes as asked for.
    fn memory_min(self) -> Bytes {
        match self {
            Self::Postgres | Self::Sqlite => Bytes::mib(1),
            Self::Mariadb => Bytes::mib(8),
        }
    }
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A throwaway server as it is asked for.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Which database.
    pub engine: Engine,
    /// An existing directory: one is made under it.
    pub on: PathBuf,
    /// An existing directory for the log (WAL, redo), if that is to lie elsewhere.
    pub log_on: Option<PathBuf>,
    /// The page cache: `shared_buffers`, `innodb_buffer_pool_size`, `cache_size`.
    pub memory: Bytes,
    /// What will be loaded into it; room is wanted for it and for what it grows by.
    pub data: Bytes,
    /// The run's own number: it names the directory and is in its mark.
    pub key: u64,
}

/// A plan that can be carried out.
#[derive(Debug)]
pub struct Ready {
    /// `PostgreSQL 15.18`.
    pub program: String,
    /// Bytes wanted under `on`; those of the log too, unless it lies elsewhere.
    pub needs: Bytes,
    /// Bytes wanted under `log_on`; none without.
    pub log_needs: Bytes,
    /// What it will do, in sentences.
    pub says: Vec<String>,
    /// What the reader of a result must know of it.
    pub remarks: Vec<String>,
    /// Of databases that earlier runs left on the server.
    pub left: Vec<String>,
    how: How,
}

#[derive(Debug)]
enum How {
    Made(Box<Making>),
    /// A server that is there, and the run's own number.
    Named(ServerUrl, u64),
}

/// What a server is made of.
#[derive(Debug)]
struct Making {
    program: String,
    plan: Plan,
    kit: Option<Kit>,
    /// Directories to be made, the main one first.
    paths: Vec<PathBuf>,
    is_log_apart: bool,
    /// In which of them the socket is.
    socket_at: usize,
}

/// Looks whether a server can be made as planned. Changes nothing.
pub fn look(plan: &Plan) -> Result<Ready, DbError> {
    let on = directory(&plan.on)?;
    let log_on = plan.log_on.as_deref().map(directory).transpose()?;
    if let (Engine::Sqlite, Some(log_on)) = (plan.engine, &plan.log_on) {
        return Err(DbError::LogOfSqlite(log_on.clone()));
    }
    if log_on.as_ref() == Some(&on) {
        return Err(DbError::SameDirectory(on));
    }
    check_memory(plan)?;
    let kit = match plan.engine {
        Engine::Postgres => Some(postgres::kit()?),
        Engine::Mariadb => Some(mariadb::kit()?),
        Engine::Sqlite => None,
    };
    if let Some(Kit { setpriv, server, user: Some(user), .. }) = &kit {
        for wanted in [Some(&on), log_on.as_ref(), Some(server)].into_iter().flatten() {
            user.can_pass(setpriv, wanted)?;
        }
    }
    let name = place::name_of(plan.key);
    let mut paths = vec![on.join(&name)];
    paths.extend(log_on.as_ref().map(|log_on| log_on.join(&name)));
    // The kernel takes 108 bytes, a zero at the end among them. PostgreSQL's name is the longest.
    let socket = on.join(&name).join("socket/.s.PGSQL.5432");
    let is_too_long = kit.is_some() && socket.as_os_str().as_bytes().len() > 107;
    if is_too_long {
        let is_root = rustix::process::geteuid().is_root();
        paths.push(Path::new(if is_root { "/run" } else { "/tmp" }).join(&name));
    }
    let socket_at = if is_too_long { paths.len() - 1 } else { 0 };
    if let Some(path) = paths.iter().find(|path| path.symlink_metadata().is_ok()) {
        return Err(DbError::Exists(path.clone()));
    }
    let (needs, log_needs) = check_room(plan, &on, log_on.as_deref())?;
    let program = kit.as_ref().map_or_else(sqlite::program, |kit| kit.program.clone());
    let (plan, is_log_apart) = (plan.clone(), log_on.is_some());
    let making = Making { program: program.clone(), plan, kit, paths, is_log_apart, socket_at };
    Ok(Ready {
        remarks: vec![format!("{program}, made for this run")],
        left: Vec::new(),
        program,
        needs,
        log_needs,
        says: making.sentences(),
        how: How::Made(Box::new(making)),
    })
}

/// Looks whether a database can be made on a server that is there. Changes nothing.
///
/// * `key`: the run's own number, which names the database.
pub fn look_at_server(url: &ServerUrl, key: u64) -> Result<Ready, DbError> {
    let Looked { program, undurable, left } = match url.engine {
        Engine::Postgres => postgres::look(url)?,
        _ => mariadb::look(url)?,
    };
    let (name, shown) = (named::name_of(key), url.text());
    let says = vec![
        format!("makes the database {name} on {program}, {shown}"),
        "asks that database only, and drops it at the end".to_owned(),
    ];
    let durable = (!undurable.is_empty())
        .then(|| format!("commits may be lost, since {}", undurable.join(" and ")));
    let left = left.iter().map(|name| {
        format!(
            "the database {name} is there: if no run uses it, an earlier one left it, and `drop database {name}` \
             removes it"
        )
    });
    let (remarks, left) = (durable.into_iter().collect(), left.collect());
    let (needs, log_needs) = (Bytes::ZERO, Bytes::ZERO);
    let how = How::Named(url.clone(), key);
    Ok(Ready { program, needs, log_needs, says, remarks, left, how })
}

/// A directory, by its path without links: what is named must be what is removed.
fn directory(path: &Path) -> Result<PathBuf, DbError> {
    let resolved = path.canonicalize().map_err(DbError::file("look at", path))?;
    if resolved.is_dir() { Ok(resolved) } else { Err(DbError::NotADirectory(path.into())) }
}

fn check_memory(plan: &Plan) -> Result<(), DbError> {
    let system = rustix::system::sysinfo();
    let most = Bytes::new((system.totalram as u64).saturating_mul(u64::from(system.mem_unit)));
    let least = plan.engine.memory_min();
    if (least..=most).contains(&plan.memory) {
        return Ok(());
    }
    Err(DbError::Memory { memory: plan.memory, engine: plan.engine.name(), least, most })
}

/// What is needed at each place; an error if it is not there.
fn check_room(plan: &Plan, on: &Path, log_on: Option<&Path>) -> Result<(Bytes, Bytes), DbError> {
    let (data, log) = plan.engine.needs();
    // SQLite's log holds a table while it is loaded.
    let data = Bytes::new(data.get().saturating_add(plan.data.get().saturating_mul(2)));
    let both = Bytes::new(data.get() + log.get());
    let device = |path: &Path| path.metadata().map(|about| about.dev()).ok();
    let enough = |path: &Path, needs: Bytes| {
        let system = rustix::fs::statvfs(path).map_err(DbError::file("look at", path))?;
        let free = Bytes::new(system.f_bavail.saturating_mul(system.f_frsize));
        let path = path.to_path_buf();
        if free < needs { Err(DbError::NoRoom { path, free, needs }) } else { Ok(()) }
    };
    let Some(log_on) = log_on else {
        enough(on, both)?;
        return Ok((both, Bytes::ZERO));
    };
    // Two directories of one file system share its room.
    let is_shared = device(on) == device(log_on);
    enough(on, if is_shared { both } else { data })?;
    enough(log_on, log)?;
    Ok((data, log))
}

impl Ready {
    /// Makes the server, or the database on it; at most `sessions` are open at once. `None` if the operator
    /// stopped it meanwhile: then everything is removed again, as after an error.
    pub fn start(self, sessions: u32, stops: &dyn Fn() -> bool) -> Result<Option<Server>, DbError> {
        match self.how {
            How::Made(making) => making.start(sessions, stops),
            How::Named(url, key) => {
                let (own, mut base) = make_on(&url, &named::name_of(key))?;
                let settings = base.settings()?;
                Ok(Some(Server::new(key, base, settings, Home::Named(own))))
            }
        }
    }
}

/// Connects to a server in use, to read its counters. Changes nothing.
pub fn observe(url: &ServerUrl) -> Result<ServedLoad, DbError> {
    match url.engine {
        Engine::Postgres => postgres::observe(url),
        _ => mariadb::observe(url),
    }
}

/// Makes a database on a server; with a connection that asks for its counters.
fn make_on(url: &ServerUrl, name: &str) -> Result<(OwnDatabase, Box<dyn Base>), DbError> {
    let execute = match url.engine {
        Engine::Postgres => postgres::execute,
        _ => mariadb::execute,
    };
    execute(url, &format!("create database {name}"), "make the database")?;
    let force = if url.engine == Engine::Postgres { " with (force)" } else { "" };
    let drop = format!("drop database if exists {name}{force}");
    let (server, named) = (url.clone(), name.to_owned());
    let dropping = move || {
        // A server that was restarted is back in a moment, and one that tidies up in there lets go.
        let until = Instant::now() + DROP_PATIENCE;
        loop {
            match execute(&server, &drop, "drop the database") {
                Ok(()) => return Ok(()),
                Err(error) if Instant::now() > until => {
                    return Err(DbError::NotDropped(named, error.to_string()));
                }
                Err(_) => std::thread::sleep(Duration::from_millis(200)),
            }
        }
    };
    let own = OwnDatabase::new(name.to_owned(), Box::new(dropping));
    let base = match url.engine {
        Engine::Postgres => postgres::attach(url, name)?,
        _ => mariadb::attach(url, name)?,
    };
    Ok((own, base))
}

impl Making {
    fn sentences(&self) -> Vec<String> {
        let Plan { engine, memory, .. } = &self.plan;
        let path =
            |index: usize| self.paths.get(index).map_or(Path::new(""), |path| path).display();
        let mut says = vec![format!("makes the directory {} for {}", path(0), self.program)];
        if self.is_log_apart {
            says.push(format!("makes the directory {} for its log", path(1)));
        }
        if self.socket_at > 0 {
            let short = path(self.socket_at);
            says.push(format!(
                "makes the directory {short} for its socket: the path would be too long"
            ));
        }
        if let Some(kit) = &self.kit {
            let user =
                kit.user.as_ref().map_or(String::new(), |user| format!(" as user `{}`", user.name));
            says.push(format!(
                "runs {}{user}, on a socket, not on the network",
                kit.server.display()
            ));
        }
        let cache = match engine {
            Engine::Postgres => "shared_buffers",
            Engine::Mariadb => "innodb_buffer_pool_size",
            Engine::Sqlite => "cache_size",
        };
        says.push(format!("gives it {memory} of memory as {cache}"));
        says.push("removes all of this at the end".to_owned());
        says
    }

    fn start(self, sessions: u32, stops: &dyn Fn() -> bool) -> Result<Option<Server>, DbError> {
        let engine = self.plan.engine;
        let user = self.kit.as_ref().and_then(|kit| kit.user.as_ref());
        let place = Place::make(engine.name(), self.plan.key, &self.paths, user)?;
        let data = place.room(0, "data", user)?;
        let Some(kit) = &self.kit else {
            let mut base: Box<dyn Base> = Box::new(sqlite::make(&data, self.plan.memory)?);
            place.sync()?;
            let settings = base.settings()?;
            return Ok(Some(Server::new(self.plan.key, base, settings, Home::Made(None, place))));
        };
        let site = Site {
            kit,
            socket: place.room(self.socket_at, "socket", user)?,
            log: self.is_log_apart.then(|| place.room(1, "log", user)).transpose()?,
            words: place.path().join("server.log"),
            place: &place,
            data,
            memory: self.plan.memory,
            sessions,
        };
        let made = match engine {
            Engine::Postgres => postgres::start(&site, stops)?,
            _ => mariadb::start(&site, stops)?,
        };
        let Some((process, mut base)) = made else { return Ok(None) };
        place.sync()?;
        let settings = base.settings()?;
        Ok(Some(Server::new(self.plan.key, base, settings, Home::Made(Some(process), place))))
    }
}
