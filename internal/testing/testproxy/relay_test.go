package testproxy

import (
	"bufio"
	"errors"
	"net"
	"os"
	"testing"
	"time"
)

func startEchoServer(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				for lines := bufio.NewScanner(conn); lines.Scan(); {
					conn.Write(append(lines.Bytes(), '\n'))
				}
			}()
		}
	}()
	return l.Addr().String()
}

func TestRelay(t *testing.T) {
	r := StartRelay(t, startEchoServer(t))
	conn, err := net.Dial("tcp", r.Address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	lines := bufio.NewReader(conn)
	send := func(text string) { conn.Write([]byte(text + "\n")) }
	expect := func(want string) {
		t.Helper()
		conn.SetReadDeadline(time.Now().Add(20 * time.Second))
		if line, err := lines.ReadString('\n'); err != nil || line != want+"\n" {
			t.Errorf("received %q, %v; want %q", line, err, want)
		}
	}
	send("one")
	expect("one")
	r.Cut()
	r.Cut()
	send("two")
	conn.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
	if line, err := lines.ReadString('\n'); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("received %q, %v while the relay was cut", line, err)
	}
	r.Mend()
	r.Mend()
	expect("two")
	send("three")
	expect("three")
}
