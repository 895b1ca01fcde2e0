//go:build !unix

package chromium

import "os/exec"

func setProcessGroup(*exec.Cmd) {}

func killGroup(c *exec.Cmd) { _ = c.Process.Kill() }
