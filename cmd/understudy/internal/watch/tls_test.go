package watch

import (
	"net"
	"testing"
)

type remoteConn struct {
	net.Conn
	remote net.Addr
}

func (e remoteConn) RemoteAddr() net.Addr { return e.remote }

// Connections within this machine need no TLS. If a proxy on this machine is configured, all
// connections use TLS, because the proxy may forward them to another machine.
func TestRemoteConnectionsUseTLS(t *testing.T) {
	tcp := func(ip string) net.Addr { return &net.TCPAddr{IP: net.ParseIP(ip), Port: 443} }
	for _, test := range []struct {
		remote net.Addr
		proxy  string
		tls    TLS
		secure bool
	}{
		{tcp("127.0.0.1"), "", TLS{}, false},
		{tcp("::1"), "", TLS{}, false},
		{&net.UnixAddr{Net: "unix", Name: "/run/x"}, "", TLS{}, false},
		{tcp("10.0.0.1"), "", TLS{}, true},
		{tcp("10.0.0.1"), "", TLS{Insecure: true}, false},
		{tcp("127.0.0.1"), "", TLS{Always: true}, true},
		{tcp("127.0.0.1"), "http://127.0.0.1:3128", TLS{}, true},
	} {
		t.Setenv("HTTPS_PROXY", test.proxy)
		t.Setenv("https_proxy", "")
		creds, err := test.tls.credentials()
		if err != nil {
			t.Fatal(err)
		}
		client, server := net.Pipe()
		secure := make(chan bool, 1)
		go func() {
			var firstByte [1]byte
			n, _ := server.Read(firstByte[:])
			secure <- n == 1 && firstByte[0] == 22 // the first byte of a TLS handshake
			server.Close()
		}()
		if _, _, err := creds.Clone().ClientHandshake(t.Context(), "shop", remoteConn{client, test.remote}); err == nil {
			client.Close()
		}
		if got := <-secure; got != test.secure {
			t.Errorf("to %v by proxy %q with %+v: TLS %v, want %v", test.remote, test.proxy, test.tls, got, test.secure)
		}
	}
}
