package srv_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/serviceconfig"

	"github.com/understudy-lb/understudy/discovery/srv"
	"github.com/understudy-lb/understudy/internal/channel/join"
	"github.com/understudy-lb/understudy/internal/lb/hierarchy"
	"github.com/understudy-lb/understudy/internal/testing/dnstest"
	"github.com/understudy-lb/understudy/internal/testing/given"
	"github.com/understudy-lb/understudy/internal/testing/testleak"
)

func TestMain(m *testing.M) { testleak.Main(m) } // patient, as a lookup without an answer ends with its timeout

const testTimeout = 60 * time.Second

type channel struct {
	resolver.ClientConn
	lines chan string
}

func (c channel) UpdateState(s resolver.State) error {
	if join.IsAwaiting(s) { // the source has not answered yet
		return nil
	}
	var endpoints []string
	for _, e := range hierarchy.Unseal(s).Endpoints {
		var addresses []string
		for _, a := range e.Addresses {
			if a.ServerName != "" {
				a.Addr += "/" + a.ServerName
			}
			addresses = append(addresses, a.Addr)
		}
		endpoints = append(endpoints, strings.Join(addresses, "+"))
	}
	c.lines <- strings.Join(endpoints, " ")
	return nil
}

func (c channel) ReportError(err error) { c.lines <- err.Error() }

func (c channel) ParseServiceConfig(string) *serviceconfig.ParseResult {
	return &serviceconfig.ParseResult{}
}

func (c channel) next(t *testing.T) string {
	t.Helper()
	select {
	case line := <-c.lines:
		return line
	case <-time.After(testTimeout):
		t.Fatalf("nothing within %v", testTimeout)
		return ""
	}
}

func (c channel) expect(t *testing.T, want string) {
	t.Helper()
	if got := c.next(t); !strings.Contains(got, want) {
		t.Errorf("the channel received %.300q, want %q", got, want)
	}
}

func startDNS(t *testing.T) *dnstest.Server {
	t.Helper()
	dns := dnstest.Start()
	t.Cleanup(dns.Stop)
	return dns
}

func target(text string) resolver.Target {
	u, err := url.Parse(text)
	if err != nil {
		panic(err)
	}
	return resolver.Target{URL: *u}
}

// build starts a resolver that is closed when the test ends. It replaces the word DNS in the target
// by the address of the DNS server.
func build(t *testing.T, dns *dnstest.Server, text string, opts ...given.Option) (channel, resolver.Resolver) {
	t.Helper()
	c := channel{lines: make(chan string, 1000)}
	if dns != nil {
		text = strings.Replace(text, "DNS", dns.Address(), 1)
	}
	r, err := given.Builder(srv.Scheme, opts...).Build(target(text), c, resolver.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return c, r
}

const shop = "_grpc._tcp.shop.test"

// set sets the SRV records of a name. Each record has the form "PRIORITY WEIGHT PORT HOST". The
// hosts a, b and so on have the addresses 127.0.0.1, 127.0.0.2 and so on.
func set(dns *dnstest.Server, name string, records ...string) {
	for i, r := range records {
		host := strings.Fields(r)[3]
		records[i] += ".test."
		dns.Set(host+".test", "A", fmt.Sprintf("127.0.0.%d", host[0]-'a'+1))
	}
	dns.Set(name, "SRV", records...)
}
