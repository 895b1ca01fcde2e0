package messages_test

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/channel/topology"
	"github.com/understudy-lb/understudy/internal/envoy/messages"
)

func checked(t *testing.T, a discovery.Answer) *topology.Checked {
	t.Helper()
	c, err := topology.Check(&a, nil)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// discoveryLocality returns a locality. Each endpoint has the form ADDRESS+ADDRESS*WEIGHT.
func discoveryLocality(zone string, weight uint32, endpoints ...string) discovery.Locality {
	l := discovery.Locality{Zone: zone, Weight: weight}
	for _, text := range endpoints {
		var e discovery.Endpoint
		addresses, weightText, _ := strings.Cut(text, "*")
		_, _ = fmt.Sscan(weightText, &e.Weight)
		e.Addresses = strings.Split(addresses, "+")
		l.Endpoints = append(l.Endpoints, e)
	}
	return l
}

func newPriority(localities ...discovery.Locality) discovery.Priority {
	return discovery.Priority{Localities: localities}
}

func resolved(addresses ...string) (endpoints []resolver.Endpoint) {
	for _, a := range addresses {
		endpoints = append(endpoints, resolver.Endpoint{Addresses: []resolver.Address{{Addr: a}}})
	}
	return endpoints
}

func shape(a *discovery.Answer) (text string) {
	for _, p := range a.Priorities {
		for _, l := range p.Localities {
			text += fmt.Sprintf("%s*%d[", topology.NameOf(&l), l.Weight)
			for _, e := range l.Endpoints {
				text += fmt.Sprintf(" %s*%d %v %s %v%v", strings.Join(e.Addresses, "+"), e.Weight, e.Health, e.Hostname, e.ForZones, e.ForNodes)
			}
			text += " ] "
		}
		text += "\n"
	}
	return text + fmt.Sprint(a.Drops)
}

func TestWriteAndRead(t *testing.T) {
	complete := discovery.Endpoint{Addresses: []string{"10.0.0.1:1", "[2001:db8::1]:1"}, Hostname: "a.example.com", ForZones: []string{"z"}, ForNodes: []string{"n"}, Health: discovery.Healthy}
	draining := discovery.Endpoint{Addresses: []string{"unix:/run/b"}, Weight: 7, Health: discovery.Draining, ForNodes: []string{"n"}}
	invalid := discovery.Endpoint{Addresses: []string{"nonsense"}, Health: discovery.Unhealthy}
	for what, test := range map[string]struct {
		answers []discovery.Answer
		want    string
	}{
		"all fields": {
			[]discovery.Answer{{
				Priorities: []discovery.Priority{newPriority(discovery.Locality{Region: "r", Zone: "z", SubZone: "s", Weight: 9, Endpoints: []discovery.Endpoint{complete, draining, invalid}})},
				Drops:      []discovery.Drop{{Category: "load", PerMillion: 10}},
			}},
			"r/z/s*9[ 10.0.0.1:1+[2001:db8::1]:1*1 healthy a.example.com [z][n] unix:/run/b*7 draining  [][n] ] \n[{load 10}]",
		},
		"weights by the endpoints": {
			[]discovery.Answer{{Priorities: []discovery.Priority{newPriority(discoveryLocality("a", 0, "10.0.0.1:1*3", "10.0.0.2:1"), discoveryLocality("b", 0, "10.0.0.3:1"), discoveryLocality("c", 0))}}},
			"/a*4[ 10.0.0.1:1*3 unknown  [][] 10.0.0.2:1*1 unknown  [][] ] /b*1[ 10.0.0.3:1*1 unknown  [][] ] /c*1[ ] \n[]",
		},
		"an address twice, and a gap": {
			[]discovery.Answer{{Priorities: []discovery.Priority{newPriority(discoveryLocality("a", 1, "10.0.0.1:1", "10.0.0.1:1")), newPriority(), newPriority(discoveryLocality("a", 1, "10.0.0.2:1+10.0.0.1:1"))}}},
			"/a*1[ 10.0.0.1:1*1 unknown  [][] ] \n/*1[ ] \n/a*1[ 10.0.0.2:1*1 unknown  [][] ] \n[] address 10.0.0.1:1 occurs again and is left out there",
		},
		"an additional address twice": {
			[]discovery.Answer{{Priorities: []discovery.Priority{newPriority(discoveryLocality("a", 1, "10.0.0.1:1+10.0.0.3:1", "10.0.0.2:1+10.0.0.3:1"))}}},
			"/a*1[ 10.0.0.1:1+10.0.0.3:1*1 unknown  [][] 10.0.0.2:1*1 unknown  [][] ] \n[] address 10.0.0.3:1 occurs again and is left out there",
		},
		"what gRPC's resolvers give": {
			[]discovery.Answer{{Resolved: resolved("10.0.0.1:https", "[::1]:https", "@abstract", "/run/b")}},
			"/*4[ 10.0.0.1:443*1 unknown  [][] [::1]:443*1 unknown  [][] unix:@abstract*1 unknown  [][] unix:/run/b*1 unknown  [][] ] \n[]",
		},
		"several answers": {
			[]discovery.Answer{
				{Resolved: resolved("east.example.com:443", "10.0.0.1:1", "/run/a")},
				{Priorities: []discovery.Priority{newPriority(discoveryLocality("a", 1, "10.0.0.1:1", "10.0.0.2:1"))}, Drops: []discovery.Drop{{Category: "load", PerMillion: 10}}},
			},
			"/*3[ east.example.com:443*1 unknown  [][] 10.0.0.1:1*1 unknown  [][] unix:/run/a*1 unknown  [][] ] \n/a*1[ 10.0.0.2:1*1 unknown  [][] ] \n[] address 10.0.0.1:1 occurs again and is left out there",
		},
		"nothing": {[]discovery.Answer{{Empty: true}}, "[]"},
	} {
		var all []*topology.Checked
		for _, a := range test.answers {
			all = append(all, checked(t, a))
		}
		written, notes, err := messages.Write("c", all...)
		if err != nil {
			t.Errorf("%s: %v", what, err)
			continue
		}
		read, _, err := messages.Read(written)
		if err != nil {
			t.Errorf("%s: Read rejected the written cluster: %v", what, err)
		} else if got := strings.Join(append([]string{shape(&read)}, notes...), " "); got != test.want || read.Service != "c" || !read.Empty || (written.GetPolicy() == nil) != (read.Drops == nil) {
			t.Errorf("%s: cluster %q, %s\nwant\n%s", what, read.Service, got, test.want)
		}
	}
}

// What a channel would dial is written, or named in an error. It must never be missing without a
// word.
func TestWriteNamesAddress(t *testing.T) {
	for address, want := range map[string]string{
		"10.0.0.1:no-such-port": `address "10.0.0.1:no-such-port" cannot be written: its port is unknown`,
		"10.0.0.1:0":            `address "10.0.0.1:0" cannot be written: port_value is 0, want 1 to 65535`,
		"10.0.0.1":              `address "10.0.0.1" cannot be written: want host:port, or unix:/path`,
		"relative.sock":         `address "relative.sock" cannot be written: want host:port, or unix:/path`,
		":80":                   `address ":80" cannot be written: address is empty`,
		"/run/\xff":             `address "unix:/run/\xff" cannot be written: its path is not valid UTF-8`,
		"a b:80":                `address "a b:80" cannot be written: address "a b" has " "`,
		"":                      `address "" cannot be written: want host:port`,
	} {
		answer := discovery.Answer{Resolved: resolved("10.0.0.2:1", address)}
		if _, _, err := messages.Write("c", checked(t, answer)); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: error = %v, want %q", address, err, want)
		}
	}
	second := discovery.Answer{Resolved: []resolver.Endpoint{{Addresses: []resolver.Address{{Addr: "10.0.0.2:1"}, {Addr: "nowhere"}}}}}
	if _, _, err := messages.Write("c", checked(t, second)); err == nil || !strings.Contains(err.Error(), `address "nowhere"`) {
		t.Errorf("the second address of an endpoint: error = %v", err)
	}
}
