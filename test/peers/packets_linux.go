package main

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

// dropReceived makes the kernel drop each packet that arrives at a socket before TCP handles it. A
// listener then answers no SYN, and a client's connection attempt gets no answer to its SYN.
func dropReceived(socket syscall.RawConn) error {
	nothing := []unix.SockFilter{{Code: unix.BPF_RET | unix.BPF_K}} // keeps 0 bytes of each packet
	var failed error
	err := socket.Control(func(fd uintptr) {
		failed = unix.SetsockoptSockFprog(int(fd), unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: 1, Filter: &nothing[0]})
	})
	return errors.Join(err, failed)
}
