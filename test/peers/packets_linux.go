package main

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

// The kernel drops each packet that arrives at the socket before TCP handles it: a listener then
// answers no SYN, so a client's connection attempt just hangs.
func dropReceived(socket syscall.RawConn) error {
	nothing := []unix.SockFilter{{Code: unix.BPF_RET | unix.BPF_K}} // keeps 0 bytes of each packet
	var failed error
	err := socket.Control(func(fd uintptr) {
		failed = unix.SetsockoptSockFprog(int(fd), unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: 1, Filter: &nothing[0]})
	})
	return errors.Join(err, failed)
}
