package main

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

// dropReceived makes the kernel drop every packet for this socket before TCP sees it. If it's a
// listener, it won't answer any SYN, so connection attempts just hang.
func dropReceived(socket syscall.RawConn) error {
	nothing := []unix.SockFilter{{Code: unix.BPF_RET | unix.BPF_K}} // keep 0 bytes of each packet
	var failed error
	err := socket.Control(func(fd uintptr) {
		failed = unix.SetsockoptSockFprog(int(fd), unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: 1, Filter: &nothing[0]})
	})
	return errors.Join(err, failed)
}
