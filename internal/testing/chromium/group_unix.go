//go:build unix

package chromium

import (
	"os/exec"
	"syscall"
)

// ownGroup makes the command the first of its own process group.
func ownGroup(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// killGroup kills the processes of the group that are left.
func killGroup(c *exec.Cmd) { _ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
