//go:build torture

package torture

import (
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// sandbox says what the system allows: socket filters, and namespaces with a small disk and a
// network that can be taken down.
type sandbox struct {
	filters bool
	network bool
	disk    string
}

// sandboxVariable is set in the process inside the namespaces.
const sandboxVariable = "UNDERSTUDY_TORTURE_SANDBOX"

// inSandbox runs this test again in namespaces of its own, and reports whether that was possible.
func inSandbox() (ran bool, err error) {
	if os.Getenv(sandboxVariable) != "" {
		return false, nil
	}
	attributes := &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Unshareflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWNET}
	if os.Geteuid() != 0 {
		attributes.Cloneflags = syscall.CLONE_NEWUSER
		attributes.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
		attributes.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	}
	command := exec.Command("/proc/self/exe", os.Args[1:]...)
	command.Env = append(os.Environ(), sandboxVariable+"=1")
	command.SysProcAttr, command.Stdout, command.Stderr = attributes, os.Stdout, os.Stderr
	if err := command.Start(); err != nil {
		return false, nil //nolint:nilerr // without the permission, the test runs outside a sandbox
	}
	return true, command.Wait()
}

func newSandbox(dir string) (sandbox, error) {
	box := sandbox{filters: canFilter()}
	if os.Getenv(sandboxVariable) == "" {
		return box, nil
	}
	if err := box.setNetwork(true); err != nil {
		return box, err
	}
	box.network = true
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=256k"); err == nil {
		box.disk = dir
	}
	return box, nil
}

func canFilter() bool {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	return syscall.AttachLsf(fd, filterAll) == nil
}

func (s sandbox) close() {
	if s.disk != "" {
		unix.Unmount(s.disk, unix.MNT_DETACH)
	}
}

func (sandbox) setNetwork(up bool) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	request, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	flags := uint16(0)
	if up {
		flags = unix.IFF_UP | unix.IFF_RUNNING
	}
	request.SetUint16(flags)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, request)
}

// missingFeature returns the feature that f needs and the system does not allow, or "".
func (s sandbox) missingFeature(f *fault) string {
	switch {
	case (f.name == modeCut || f.name == modeLossy) && !s.filters:
		return "no filters of sockets"
	case f.name == "network down" && !s.network:
		return "no network namespace"
	case f.name == "disk full" && s.disk == "":
		return "no file system of our own"
	}
	return ""
}
