// Package testproxy has an HTTP CONNECT proxy on loopback. For tests only.
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

// Proxy is a proxy that knows only CONNECT, and names of its own, which it takes for
// addresses on loopback. All methods are safe for concurrent use.
type Proxy struct {
	// URL is what HTTPS_PROXY is to be.
	URL string

	mu     sync.Mutex
	routes map[string]string
	asked  []string
}

// Start starts a proxy, which stops with the test.
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

// Route makes the proxy connect those who ask for name, with its port, to address.
func (p *Proxy) Route(name, address string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.routes[name] = address
}

// Asked returns the names that were asked for, sorted, each once.
func (p *Proxy) Asked() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	asked := slices.Sorted(slices.Values(p.asked))
	return slices.Compact(asked)
}

// route notes that name was asked for, and returns where it is.
func (p *Proxy) route(name string) (address string, known bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked = append(p.asked, name)
	address, known = p.routes[name]
	return address, known
}

func (p *Proxy) serve(client net.Conn) {
	defer client.Close() //nolint:errcheck // nothing to be lost
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
	defer backend.Close() //nolint:errcheck // nothing to be lost
	fmt.Fprint(client, "HTTP/1.1 200 OK\r\n\r\n")
	go func() {
		io.Copy(backend, reader) //nolint:errcheck // an end is an end
		backend.Close()          //nolint:errcheck // nothing to be lost
	}()
	io.Copy(client, backend) //nolint:errcheck // an end is an end
}
