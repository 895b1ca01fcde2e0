//go:build !linux

package main

import (
	"errors"
	"syscall"
)

func dropArrivals(syscall.RawConn) error { return errors.New("packets can be dropped only on Linux") }
