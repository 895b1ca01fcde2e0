package main

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

// dropArrivals makes the kernel drop each packet that arrives at a socket, before TCP sees it. A
// listener then answers no SYN. A client's socket never sees the answer to its own SYN.
func dropArrivals(socket syscall.RawConn) error {
	nothing := []unix.SockFilter{{Code: unix.BPF_RET | unix.BPF_K}} // a program that keeps 0 bytes of each packet
	var failed error
	err := socket.Control(func(fd uintptr) {
		failed = unix.SetsockoptSockFprog(int(fd), unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: 1, Filter: &nothing[0]})
	})
	return errors.Join(err, failed)
}
