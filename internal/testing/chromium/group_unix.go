//go:build unix

package chromium

import (
	"os/exec"
	"syscall"
)

// ownGroup makes the command start in its own process group.
func ownGroup(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// killGroup kills the remaining processes of the group.
func killGroup(c *exec.Cmd) { _ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
