//! What the system knows of this process's memory: which mapping an address lies in, asked of /proc/self/maps without
//! reading it (PROCMAP_QUERY, Linux 6.11).

use std::fs::File;
use std::ops::Range;

use nix::sys::mman::ProtFlags;
use std::os::fd::AsRawFd;

/// As `struct procmap_query` of linux/fs.h.
#[repr(C)]
#[derive(Default)]
struct Query {
    size: u64,
    query_flags: u64,
    query_addr: u64,
    vma_start: u64,
    vma_end: u64,
    vma_flags: u64,
    vma_page_size: u64,
    vma_offset: u64,
    inode: u64,
    dev_major: u32,
    dev_minor: u32,
    vma_name_size: u32,
    build_id_size: u32,
    vma_name_addr: u64,
    build_id_addr: u64,
}

nix::ioctl_readwrite!(procmap_query, b'f', 17, Query);

const READABLE: u64 = 1;
const WRITABLE: u64 = 2;
const EXECUTABLE: u64 = 4;
const SHARED: u64 = 8;
const COVERING_OR_NEXT: u64 = 0x10;
const FILE_BACKED: u64 = 0x20;

/// A file: its device and inode; 0 for memory that has none.
pub type FileId = (u32, u32, u64);

/// A mapping of this process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Area {
    pub pages: Range<usize>,
    pub file: FileId,
    /// Where in the file its first byte lies.
    pub offset: u64,
    flags: u64,
    /// What the kernel calls it, `[stack]` say; asked for only by [`Areas::named`].
    pub name: String,
}

impl Area {
    /// Whether it is memory of this process alone, to be read and written, without a file, and neither the main heap
    /// nor the main stack.
    pub fn is_plain(&self) -> bool {
        self.file.2 == 0
            && self.flags & (READABLE | WRITABLE | EXECUTABLE | SHARED) == READABLE | WRITABLE
            && (self.name.is_empty() || self.name.starts_with("[anon:"))
    }

    /// Whether `pages` lie in it, and show `file` from `offset` on to all who map it.
    pub fn shows(&self, pages: &Range<usize>, file: FileId, offset: u64) -> bool {
        self.file == file
            && self.is_shared()
            && self.pages.start <= pages.start
            && pages.end <= self.pages.end
            && self.offset + (pages.start - self.pages.start) as u64 == offset
    }

    pub fn is_shared(&self) -> bool {
        self.flags & SHARED != 0
    }

    pub fn is_readable(&self) -> bool {
        self.flags & READABLE != 0
    }

    pub fn protection(&self) -> ProtFlags {
        [(READABLE, ProtFlags::PROT_READ), (WRITABLE, ProtFlags::PROT_WRITE), (EXECUTABLE, ProtFlags::PROT_EXEC)]
            .into_iter()
            .filter(|(flag, _)| self.flags & flag != 0)
            .fold(ProtFlags::PROT_NONE, |all, (_, one)| all | one)
    }

    /// Whether it lies in one of these.
    pub fn is_in(&self, views: &[Range<usize>]) -> bool {
        views.iter().any(|view| view.contains(&self.pages.start))
    }

    /// The bytes of its file that it shows.
    pub fn of_file(&self) -> Range<u64> {
        self.offset..self.offset + self.pages.len() as u64
    }
}

/// This process's mappings.
pub struct Areas(File);

impl Areas {
    /// None where the system does not answer.
    pub fn open() -> Option<Self> {
        let areas = Self(File::open("/proc/self/maps").ok()?);
        areas.ask(&raw const areas as usize, 0, None).is_some().then_some(areas)
    }

    /// The mapping that an address lies in, without its name.
    pub fn at(&self, address: usize) -> Option<Area> {
        self.ask(address, 0, None)
    }

    /// The same, with its name.
    pub fn named(&self, address: usize) -> Option<Area> {
        self.ask(address, 0, Some(&mut [0; 256]))
    }

    /// All mappings of files, in order.
    pub fn of_files(&self) -> impl Iterator<Item = Area> {
        let mut from = 0;
        std::iter::from_fn(move || {
            let area = self.ask(from, COVERING_OR_NEXT | FILE_BACKED, None)?;
            from = area.pages.end;
            Some(area)
        })
    }

    fn ask(&self, address: usize, flags: u64, mut name: Option<&mut [u8; 256]>) -> Option<Area> {
        let mut query = Query {
            size: size_of::<Query>() as u64,
            query_flags: flags,
            query_addr: address as u64,
            ..Query::default()
        };
        if let Some(name) = &mut name {
            query.vma_name_size = name.len() as u32;
            query.vma_name_addr = name.as_mut_ptr().expose_provenance() as u64;
        }
        // SAFETY: it is the structure that the call takes, of the size that it says; the name's room is as long as it
        // says.
        unsafe { procmap_query(self.0.as_raw_fd(), &raw mut query) }.ok()?;
        let name = name.map_or_else(String::new, |name| {
            let length = (query.vma_name_size as usize).min(name.len());
            String::from_utf8_lossy(&name[..length]).trim_end_matches('\0').to_owned()
        });
        Some(Area {
            pages: query.vma_start as usize..query.vma_end as usize,
            file: (query.dev_major, query.dev_minor, query.inode),
            offset: query.vma_offset,
            flags: query.vma_flags,
            name,
        })
    }
}

/// Whether the system keeps memory of this process from being paged out, or others have pages of it (devices, the
/// kernel's queues): what is put in its place would be other pages.
pub fn some_is_pinned() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let none = |name: &str| {
        let kilobytes = status.lines().find_map(|line| line.strip_prefix(name));
        kilobytes.and_then(|kilobytes| kilobytes.split_whitespace().next()) == Some("0")
    };
    !(none("VmLck:") && none("VmPin:"))
}
