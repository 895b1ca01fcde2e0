//go:build unix

package chromium

import (
	"os/exec"
	"syscall"
)

// ownGroup lets all processes that a command starts be found again.
func ownGroup(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// killGroup ends those that are left.
func killGroup(c *exec.Cmd) { _ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
