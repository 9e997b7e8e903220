// The system calls that a sandbox on runc may make. It is an allow-list, so that new system calls of the kernel stay forbidden.
// All other calls fail with EPERM. gVisor needs no filter, because its guests never call the host's kernel.

import type { OciSeccomp, OciSyscallRule } from "./oci.ts";

export interface SyscallGroup {
  readonly why: string;
  readonly names: string;
  readonly rule?: Omit<OciSyscallRule, "names" | "action">;
  readonly action?: "SCMP_ACT_ALLOW" | "SCMP_ACT_ERRNO";
}

const ENOSYS = 38;
/** CLONE_NEW{NS,CGROUP,UTS,IPC,USER,PID,NET}. A new namespace would give the guest access to kernel code that only root can reach. */
const NAMESPACE_FLAGS = 0x7e020000;

export const SYSCALL_GROUPS: readonly SyscallGroup[] = [
  {
    why: "read, write and position open files",
    names:
      "read write readv writev pread64 pwrite64 preadv pwritev preadv2 pwritev2 lseek _llseek close close_range dup dup2 dup3 fcntl fcntl64 flock " +
      "fsync fdatasync sync syncfs sync_file_range truncate truncate64 ftruncate ftruncate64 fallocate fadvise64 fadvise64_64 readahead " +
      "copy_file_range sendfile sendfile64 splice tee vmsplice ioctl",
  },
  {
    why: "open, name and describe files",
    names:
      "open openat openat2 creat stat lstat fstat newfstatat stat64 lstat64 fstat64 fstatat64 statx statfs fstatfs statfs64 fstatfs64 access faccessat " +
      "faccessat2 readlink readlinkat getdents getdents64 getcwd chdir fchdir chroot umask link linkat symlink symlinkat unlink unlinkat " +
      "rename renameat renameat2 mkdir mkdirat rmdir mknod mknodat chmod fchmod fchmodat fchmodat2 chown fchown lchown fchownat utime utimes " +
      "utimensat futimesat name_to_handle_at",
  },
  {
    why: "extended attributes: file metadata, package managers",
    names:
      "getxattr lgetxattr fgetxattr setxattr lsetxattr fsetxattr listxattr llistxattr flistxattr removexattr lremovexattr fremovexattr",
  },
  {
    why: "wait for files, timers and signals",
    names:
      "poll ppoll select _newselect pselect6 epoll_create epoll_create1 epoll_ctl epoll_ctl_old epoll_wait epoll_wait_old epoll_pwait epoll_pwait2 eventfd " +
      "eventfd2 signalfd signalfd4 timerfd_create timerfd_settime timerfd_gettime inotify_init inotify_init1 inotify_add_watch " +
      "inotify_rm_watch fanotify_mark pipe pipe2",
  },
  {
    why: "memory of the process itself",
    names:
      "brk mmap mmap2 munmap mremap mprotect madvise mincore msync mlock mlock2 mlockall munlock munlockall memfd_create membarrier " +
      "get_mempolicy set_mempolicy mbind remap_file_pages pkey_alloc pkey_free pkey_mprotect process_madvise map_shadow_stack mseal",
  },
  {
    why: "processes and threads",
    names:
      "fork vfork execve execveat exit exit_group wait4 waitid waitpid getpid getppid gettid getpgid setpgid getpgrp getsid setsid " +
      "set_tid_address set_robust_list get_robust_list futex futex_time64 futex_waitv futex_wait futex_wake futex_requeue arch_prctl prctl rseq " +
      "sched_yield sched_getaffinity sched_setaffinity " +
      "sched_getparam sched_setparam sched_getscheduler sched_setscheduler sched_getattr sched_setattr sched_get_priority_max " +
      "sched_get_priority_min sched_rr_get_interval getpriority setpriority ioprio_get ioprio_set getrlimit setrlimit ugetrlimit prlimit64 " +
      "getrusage times getcpu capget capset pidfd_open pidfd_send_signal set_thread_area get_thread_area restart_syscall",
  },
  {
    why: "new processes and threads, but no new namespaces",
    names: "clone",
    rule: { args: [{ index: 0, value: NAMESPACE_FLAGS, valueTwo: 0, op: "SCMP_CMP_MASKED_EQ" }] },
  },
  {
    why: "a filter cannot read the flags of clone3, which are in memory; ENOSYS makes the C library use clone",
    names: "clone3",
    action: "SCMP_ACT_ERRNO",
    rule: { errnoRet: ENOSYS },
  },
  {
    why: "signals between processes of the sandbox",
    names:
      "kill tkill tgkill rt_sigaction rt_sigpending rt_sigprocmask rt_sigqueueinfo rt_sigreturn rt_sigsuspend rt_sigtimedwait " +
      "rt_tgsigqueueinfo sigaction sigaltstack sigpending sigprocmask sigreturn sigsuspend pause alarm",
  },
  {
    why: "users and groups: su, sudo, the agent",
    names:
      "getuid geteuid getgid getegid getresuid getresgid getgroups setuid setgid setreuid setregid setresuid setresgid setgroups setfsuid setfsgid",
  },
  {
    why: "time; setting the clock needs a capability that no sandbox has",
    names:
      "time gettimeofday clock_gettime clock_gettime64 clock_getres clock_nanosleep clock_nanosleep_time64 nanosleep getitimer setitimer " +
      "timer_create timer_delete timer_getoverrun timer_gettime timer_settime adjtimex clock_adjtime",
  },
  {
    why: "IPv4 and IPv6 sockets, local sockets and routing queries; no AF_PACKET, AF_VSOCK, AF_ALG or other families",
    names: "socket",
    rule: { args: [{ index: 0, value: 1, op: "SCMP_CMP_EQ" }] },
  },
  { why: "as above: AF_INET", names: "socket", rule: { args: [{ index: 0, value: 2, op: "SCMP_CMP_EQ" }] } },
  { why: "as above: AF_INET6", names: "socket", rule: { args: [{ index: 0, value: 10, op: "SCMP_CMP_EQ" }] } },
  { why: "as above: AF_NETLINK", names: "socket", rule: { args: [{ index: 0, value: 16, op: "SCMP_CMP_EQ" }] } },
  {
    why: "use of sockets",
    names:
      "socketpair bind listen accept accept4 connect getsockname getpeername getsockopt setsockopt shutdown send sendto sendmsg sendmmsg recv " +
      "recvfrom recvmsg recvmmsg",
  },
  {
    why: "System V and POSIX inter-process communication of the sandbox's own namespace",
    names:
      "shmget shmat shmdt shmctl semget semop semtimedop semctl msgget msgsnd msgrcv msgctl mq_open mq_unlink mq_timedsend mq_timedreceive " +
      "mq_notify mq_getsetattr ipc",
  },
  {
    why: "asynchronous input and output of databases; not io_uring, which has been the source of many escapes",
    names: "io_setup io_destroy io_submit io_cancel io_getevents io_pgetevents",
  },
  { why: "facts about the machine; randomness", names: "uname sysinfo getrandom" },
  {
    why: "debuggers and profilers on the sandbox's own processes",
    names: "ptrace process_vm_readv process_vm_writev kcmp",
  },
  {
    why: "programs confine themselves further",
    names: "seccomp landlock_create_ruleset landlock_add_rule landlock_restrict_self",
  },
  ...[0, 0x8, 0x20000, 0x20008, 0xffffffff].map((value) => ({
    why: "the execution domains of ordinary programs (setarch, 32-bit uname), no others",
    names: "personality",
    rule: { args: [{ index: 0, value, op: "SCMP_CMP_EQ" }] },
  })),
];

const ARCHITECTURES: Readonly<Record<string, readonly string[]>> = {
  x64: ["SCMP_ARCH_X86_64"],
  arm64: ["SCMP_ARCH_AARCH64"],
};

export function seccompFilter(arch: string): OciSeccomp {
  const architectures = ARCHITECTURES[arch];
  if (!architectures) throw new Error(`no seccomp filter for processor architecture ${arch}`);
  return {
    defaultAction: "SCMP_ACT_ERRNO",
    defaultErrnoRet: 1,
    architectures,
    syscalls: SYSCALL_GROUPS.map((group) => ({
      names: group.names.split(" "),
      action: group.action ?? "SCMP_ACT_ALLOW",
      ...group.rule,
    })),
  };
}
