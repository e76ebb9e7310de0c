//! The allocator of the process.

/// Has the allocator of this process hand large blocks back to the system as soon as they are
/// freed. Left alone, glibc learns from the first long frame to keep blocks of that size. It holds
/// for all that the process allocates, so it is for a program to call that does little but serve.
///
/// Another allocator than glibc's is left as it is.
pub fn return_large_blocks() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        let bytes = crate::limits::RESTING_BYTES_MAX as libc::c_int;
        // SAFETY: mallopt(3) takes two integers. It fails by changing nothing.
        unsafe { libc::mallopt(libc::M_MMAP_THRESHOLD, bytes) };
    }
}
