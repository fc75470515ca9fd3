//! The processor quota that a cgroup puts on a process.
//!
//! Everything is a function of file contents: [`quota_cores`] gets the reader of files as an argument, so that the
//! tests can lay out any container they like.

use std::path::{Path, PathBuf};

use crate::Error;

/// The tightest quota, in cores, among the cgroup of this process and those around it; `None` when none is set.
///
/// `read` gives the contents of a file, or `None` when it cannot be read. A file that is absent sets no quota.
pub(crate) fn quota_cores(read: impl Fn(&Path) -> Option<String>) -> Result<Option<f64>, Error> {
    let file = |path: &str| read(Path::new(path)).unwrap_or_default();
    let mut tightest: Option<f64> = None;
    for directory in directories(&file("/proc/self/cgroup"), &file("/proc/self/mountinfo")) {
        for quota in [unified(&directory, &read)?, legacy(&directory, &read)?].into_iter().flatten() {
            tightest = Some(tightest.map_or(quota, |least| least.min(quota)));
        }
    }
    Ok(tightest)
}

/// The quota in `cpu.max` of a version 2 cgroup.
fn unified(directory: &Path, read: impl Fn(&Path) -> Option<String>) -> Result<Option<f64>, Error> {
    let file = directory.join("cpu.max");
    let Some(text) = read(&file) else {
        return Ok(None);
    };
    parse_cpu_max(&text).ok_or(Error::Quota { file, text })
}

/// The quota in `cpu.cfs_quota_us` and `cpu.cfs_period_us` of a version 1 cgroup.
fn legacy(directory: &Path, read: impl Fn(&Path) -> Option<String>) -> Result<Option<f64>, Error> {
    let file = directory.join("cpu.cfs_quota_us");
    let (Some(text), Some(period)) = (read(&file), read(&directory.join("cpu.cfs_period_us"))) else {
        return Ok(None);
    };
    parse_cfs(&text, &period).ok_or(Error::Quota { file, text })
}

/// Reads `cpu.max`: "quota period" in microseconds, "max" for no quota. The outer `None` is text of another kind.
fn parse_cpu_max(text: &str) -> Option<Option<f64>> {
    let mut words = text.split_ascii_whitespace();
    let quota = words.next()?;
    // The kernel writes both words; a period that is missing is its default.
    let period = words.next().unwrap_or("100000");
    if words.next().is_some() {
        return None;
    }
    if quota == "max" { Some(None) } else { cores(quota, period).map(Some) }
}

/// Reads the quota and the period of a version 1 cgroup; -1 is no quota. The outer `None` is text of another kind.
fn parse_cfs(quota: &str, period: &str) -> Option<Option<f64>> {
    if quota.trim() == "-1" { Some(None) } else { cores(quota, period).map(Some) }
}

fn cores(quota: &str, period: &str) -> Option<f64> {
    let quota: u64 = quota.trim().parse().ok().filter(|&quota| quota > 0)?;
    let period: u64 = period.trim().parse().ok().filter(|&period| period > 0)?;
    Some(quota as f64 / period as f64)
}

/// Every folder that may hold a quota for a process, from its cgroups up to where they are mounted.
///
/// `cgroup` is `/proc/self/cgroup`: lines `id:controllers:path`, no controllers for version 2. `mountinfo` is
/// `/proc/self/mountinfo`, which says where a hierarchy is mounted, and which part of it: in a container it is often
/// the container's own part, and the path in `cgroup` then starts with folders that cannot be seen.
fn directories(cgroup: &str, mountinfo: &str) -> Vec<PathBuf> {
    let mut directories = Vec::new();
    for line in cgroup.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else {
            continue;
        };
        let unified = controllers.is_empty();
        if !unified && !controllers.split(',').any(|controller| controller == "cpu") {
            continue;
        }
        for mount in mountinfo.lines().filter_map(Mount::parse).filter(|mount| mount.unified == unified) {
            // Outside of what is mounted: then the mounted part is the nearest that can be seen.
            let inside = Path::new(path).strip_prefix(mount.root).unwrap_or(Path::new(""));
            let inside = if inside.starts_with("..") { Path::new("") } else { inside };
            directories.extend(inside.ancestors().map(|folder| Path::new(mount.point).join(folder)));
        }
    }
    directories
}

/// One line of mountinfo, if it mounts a cgroup hierarchy that may hold quotas.
struct Mount<'a> {
    /// The part of the hierarchy that is mounted.
    root: &'a str,
    /// Where it is mounted.
    point: &'a str,
    /// Version 2, or else version 1 with the cpu controller.
    unified: bool,
}

impl<'a> Mount<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let (before, after) = line.split_once(" - ")?;
        let mut before = before.split(' ').skip(3);
        let (root, point) = (before.next()?, before.next()?);
        let mut after = after.split(' ');
        let unified = match after.next()? {
            "cgroup2" => true,
            "cgroup" if after.nth(1)?.split(',').any(|option| option == "cpu") => false,
            _ => return None,
        };
        Some(Mount { root, point, unified })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The quota on a machine that has these files and no others.
    fn on(files: &[(&str, &str)]) -> Result<Option<f64>, Error> {
        quota_cores(|path| {
            let found = files.iter().find(|&&(name, _)| path == Path::new(name));
            found.map(|&(_, text)| text.to_owned())
        })
    }

    const V2: (&str, &str) =
        ("/proc/self/mountinfo", "30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n");

    #[test]
    fn cpu_max() {
        assert_eq!(parse_cpu_max("max 100000\n"), Some(None));
        assert_eq!(parse_cpu_max("150000 100000\n"), Some(Some(1.5)));
        assert_eq!(parse_cpu_max("200000"), Some(Some(2.0)));
        for text in ["", "min 1", "-1 100000", "0 100000", "1 0", "1 2 3", "18446744073709551616 1"] {
            assert_eq!(parse_cpu_max(text), None, "{text:?}");
        }
    }

    #[test]
    fn cfs_quota() {
        assert_eq!(parse_cfs("-1\n", "100000\n"), Some(None));
        assert_eq!(parse_cfs("50000\n", "100000\n"), Some(Some(0.5)));
        for (quota, period) in [("", "100000"), ("-2", "100000"), ("1", "0"), ("1", ""), ("x", "y")] {
            assert_eq!(parse_cfs(quota, period), None, "{quota:?} {period:?}");
        }
    }

    #[test]
    fn nothing_there_is_no_quota() {
        assert_eq!(on(&[]).unwrap(), None);
        assert_eq!(on(&[V2, ("/proc/self/cgroup", "0::/\n")]).unwrap(), None);
    }

    #[test]
    fn the_tightest_on_the_way_up_counts() {
        let files = [
            V2,
            ("/proc/self/cgroup", "0::/user/job/step\n"),
            ("/sys/fs/cgroup/user/job/step/cpu.max", "max 100000\n"),
            ("/sys/fs/cgroup/user/job/cpu.max", "250000 100000\n"),
            ("/sys/fs/cgroup/user/cpu.max", "400000 100000\n"),
        ];
        assert_eq!(on(&files).unwrap(), Some(2.5));
    }

    #[test]
    fn a_container_that_sees_its_own_part_only() {
        // No cgroup namespace: the path is the host's, and what is mounted is the container's part of it.
        let files = [
            (
                "/proc/self/mountinfo",
                "33 31 0:30 /docker/4f2 /sys/fs/cgroup/cpu,cpuacct ro - cgroup cgroup rw,cpu,cpuacct\n\
                 34 31 0:31 /docker/4f2 /sys/fs/cgroup/cpuset ro - cgroup cgroup rw,cpuset\n",
            ),
            ("/proc/self/cgroup", "4:cpu,cpuacct:/docker/4f2\n3:cpuset:/docker/4f2\n"),
            ("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "300000\n"),
            ("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n"),
        ];
        assert_eq!(on(&files).unwrap(), Some(3.0));
        // A path that is not in what is mounted, and one above it.
        for path in ["4:cpu,cpuacct:/elsewhere\n", "4:cpu,cpuacct:/docker/4f2/../..\n"] {
            let mut moved = files;
            moved[1].1 = path;
            assert_eq!(on(&moved).unwrap(), Some(3.0), "{path:?}");
        }
    }

    #[test]
    fn a_file_of_another_kind_is_an_error() {
        let files = [V2, ("/proc/self/cgroup", "0::/\n"), ("/sys/fs/cgroup/cpu.max", "lots\n")];
        let error = on(&files).unwrap_err().to_string();
        assert!(error.contains("/sys/fs/cgroup/cpu.max") && error.contains("lots"), "{error}");
    }
}
