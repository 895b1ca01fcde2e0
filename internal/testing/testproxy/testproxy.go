// Package testproxy has an HTTP CONNECT proxy on loopback.
package testproxy

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"testing"
)

// Proxy is an HTTP CONNECT proxy. It refuses names without a Route. Its methods may be called
// concurrently.
type Proxy struct {
	URL string

	mu        sync.Mutex
	routes    map[string]string
	requested []string
}

func Start(t *testing.T) *Proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{URL: "http://" + listener.Addr().String(), routes: make(map[string]string)}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			running.Go(func() { p.serve(client) })
		}
	})
	t.Cleanup(func() {
		listener.Close() //nolint:errcheck // the test ends
		running.Wait()
	})
	return p
}

func (p *Proxy) Route(name, address string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.routes[name] = address
}

func (p *Proxy) RequestedNames() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	requested := slices.Sorted(slices.Values(p.requested))
	return slices.Compact(requested)
}

func (p *Proxy) route(name string) (address string, known bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.requested = append(p.requested, name)
	address, known = p.routes[name]
	return address, known
}

func (p *Proxy) serve(client net.Conn) {
	defer client.Close() //nolint:errcheck // nothing is pending
	reader := bufio.NewReader(client)
	request, err := http.ReadRequest(reader)
	if err != nil {
		return
	}
	address, known := p.route(request.Host)
	if request.Method != http.MethodConnect || !known {
		fmt.Fprint(client, "HTTP/1.1 502 Bad Gateway\r\n\r\n")
		return
	}
	backend, err := net.Dial("tcp", address)
	if err != nil {
		fmt.Fprint(client, "HTTP/1.1 502 Bad Gateway\r\n\r\n")
		return
	}
	defer backend.Close() //nolint:errcheck // nothing is pending
	fmt.Fprint(client, "HTTP/1.1 200 OK\r\n\r\n")
	go func() {
		io.Copy(backend, reader) //nolint:errcheck // errors end the copy
		backend.Close()          //nolint:errcheck // nothing is pending
	}()
	io.Copy(client, backend) //nolint:errcheck // errors end the copy
}
