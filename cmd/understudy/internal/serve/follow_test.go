package serve

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"

	"github.com/understudy-lb/understudy/internal/envoy/messages"
)

func failoverTarget(dir string) string {
	return "failover:///file:%2F%2F" + filepath.Join(dir, "east.yaml") + ",file:%2F%2F" + filepath.Join(dir, "west.yaml")
}

// waitForEndpoints waits until the cluster shop is served with the given number of endpoints. It
// ignores other numbers, because the discovery mechanisms of the target answer one after another.
func (l *logRecorder) waitForEndpoints(t *testing.T, endpoints float64) {
	t.Helper()
	for line := l.wait(t, "cluster served"); line["cluster"] != "shop" || line["endpoints"] != endpoints; {
		line = l.wait(t, "cluster served")
	}
}

// A cluster from a target has the endpoints of all discovery mechanisms in the target, and follows
// their changes.
func TestFrom(t *testing.T) {
	t.Parallel()
	dir := makeDir(t, t.TempDir(), "east.yaml", "west.yaml")
	write(t, filepath.Join(dir, "west.yaml"), endpoints("2", "3")+"policy: {dropOverloads: [{category: load, dropPercentage: {numerator: 1}}]}\n")
	s, l := start(t, Options{From: []string{"shop=" + failoverTarget(dir)}, Paths: []string{makeDir(t, t.TempDir(), "a.yaml")}})
	if notes, _ := l.wait(t, "some settings of the target are ignored")["notes"].(string); !strings.Contains(notes, "west.yaml: its drops have no effect") {
		t.Errorf("the log says %q, want that the drops of the second mechanism have no effect", notes)
	}
	l.waitForEndpoints(t, 3)
	next := requestEndpoints(t, openStream(t, s, nil), "shop")
	if got := next(); got != 3 {
		t.Errorf("%d endpoints at first, want 3", got)
	}
	write(t, filepath.Join(dir, "east.yaml"), endpoints("1", "4"))
	if got := next(); got != 4 {
		t.Errorf("%d endpoints after an edit, want 4", got)
	}
	write(t, filepath.Join(dir, "east.yaml"), endpoints("0"))
	if problem, _ := l.wait(t, "rejected, its last good content is still served")["error"].(string); !strings.Contains(problem, "east.yaml:3:") {
		t.Errorf("the log says %q, want the place", problem)
	}
	expectServed(t, s, "with a broken entry", map[string]int{"a": 1, "shop": 4})
	write(t, filepath.Join(dir, "east.yaml"), endpoints("1"))
	if got := next(); got != 3 {
		t.Errorf("%d endpoints once it is mended, want 3", got)
	}
	l.wait(t, "no longer rejected")
}

// Until a target has answered, no response says that its cluster does not exist.
func TestFromTargetWithoutAnswer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, l := start(t, Options{From: []string{"shop=" + failoverTarget(dir)}, Paths: []string{makeDir(t, t.TempDir(), "a.yaml")}})
	stream := openStream(t, s, nil)
	send(t, stream, &discoveryv3.DiscoveryRequest{TypeUrl: clusterType, ResourceNames: []string{"shop"}, Node: &corev3.Node{Id: "me"}})
	if problem, _ := l.wait(t, "rejected, and not served")["error"].(string); !strings.Contains(problem, "no such file") {
		t.Errorf("the log says %q, want why", problem)
	}
	expectServed(t, s, "beside it", map[string]int{"a": 1})
	write(t, filepath.Join(dir, "west.yaml"), endpoints("1"))
	if got := len(receive(t, stream).GetResources()); got != 1 {
		t.Errorf("%d clusters, want the one that is there now", got)
	}
	expectServed(t, s, "with an entry that is there", map[string]int{"a": 1, "shop": 1})
}

func TestFromSurvivesRestart(t *testing.T) {
	t.Parallel()
	dir := makeDir(t, t.TempDir(), "east.yaml", "west.yaml")
	write(t, filepath.Join(dir, "west.yaml"), endpoints("2", "3"))
	o := Options{From: []string{"shop=" + failoverTarget(dir)}, Cache: t.TempDir()}
	s, l := start(t, o)
	l.waitForEndpoints(t, 3)
	s.Stop()
	rename(t, dir, dir+".away")
	s, l = start(t, o)
	for l.wait(t, "cluster restored from the cache")["cluster"] != "shop" {
	}
	expectServed(t, s, "while the target fails", map[string]int{"shop": 3})
	s.Stop()
	s, _ = start(t, Options{From: []string{"other=" + failoverTarget(dir)}, Cache: o.Cache, Paths: []string{makeDir(t, t.TempDir(), "a.yaml")}})
	expectServed(t, s, "under another name", map[string]int{"a": 1})
}

// A target's addresses are all served in a form that clients can dial. If that is impossible, the
// target fails, and the error names the address. Otherwise, clients would go to the backup.
func TestFromServesEveryAddressOrFails(t *testing.T) {
	for target, want := range map[string]string{
		"failover:///127.0.0.1:https,127.0.0.1:9":               "0 127.0.0.1:443 1 127.0.0.1:9",
		"failover:///unix-abstract:x,unix:%2Frun%2Fb,[::1]:9":   "0 unix:@x 1 unix:/run/b 2 [::1]:9",
		"failover:///passthrough:%2F%2F%2Fnowhere,127.0.0.1:9":  `address "nowhere" cannot be written: want host:port, or unix:/path`,
		"failover:///unix:run%2Fb,127.0.0.1:9":                  `address "run/b" cannot be written: want host:port, or unix:/path`,
		"failover:///127.0.0.1:no-such-port,127.0.0.1:9":        `address "127.0.0.1:no-such-port" cannot be written: its port is unknown on this machine`,
		"failover:///127.0.0.1:9,passthrough:%2F%2F%2F1.2.3.4:": `address "1.2.3.4:" cannot be written: port_value is 0, want 1 to 65535`,
	} {
		s, l := start(t, Options{From: []string{"shop=" + target}})
		if strings.HasPrefix(want, "address") {
			if problem, _ := l.wait(t, "rejected, and not served")["error"].(string); !strings.Contains(problem, want) {
				t.Errorf("%s: the log says %q, want %q", target, problem, want)
			}
			continue
		}
		l.wait(t, "cluster served")
		var c endpointv3.ClusterLoadAssignment
		must(t, fetch(t, s, endpointType, "shop").GetResources()[0].UnmarshalTo(&c))
		var got []string
		for _, locality := range c.GetEndpoints() {
			got = append(got, fmt.Sprint(locality.GetPriority()))
			for _, e := range locality.GetLbEndpoints() {
				target, _ := messages.Dial(e.GetEndpoint().GetAddress())
				got = append(got, target)
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %s is served, want %s", target, got, want)
		}
	}
}

// If an address occurs again in another priority, it is served only once, and the log says so.
func TestFromLogsRepeatedAddresses(t *testing.T) {
	_, l := start(t, Options{From: []string{"shop=127.0.0.1:5,127.0.0.1:6,127.0.0.1:5"}})
	if notes, _ := l.wait(t, "some settings of the target are ignored")["notes"].(string); notes != "address 127.0.0.1:5 occurs again and is left out there" {
		t.Errorf("the log says %q", notes)
	}
}

func TestFromRejectsInvalidTargets(t *testing.T) {
	for _, test := range []struct{ from, want string }{
		{"shop=nosuch:///a", `no resolver is registered for scheme "nosuch"`},
		{"shop=file:///a?nosuch=1", `unknown parameter "nosuch"`},
		{"file:///a?nosuch=1", `unknown parameter "nosuch"`},
		{"=127.0.0.1:5", "has no name; want NAME=TARGET"},
		{"xdstp:=127.0.0.1:5", "want host:port"},
		{"", "target has no entries"},
	} {
		_, err := Start(context.Background(), Options{Listen: "127.0.0.1:0", From: []string{test.from}})
		if err == nil || !strings.Contains(err.Error(), "--from: ") || !strings.Contains(err.Error(), test.want) {
			t.Errorf("--from %q: %v, want %q", test.from, err, test.want)
		}
	}
	_, err := Start(context.Background(), Options{Listen: "127.0.0.1:0", From: []string{"a=127.0.0.1:5", "a=127.0.0.1:6"}})
	if err == nil || !strings.Contains(err.Error(), `cluster "a" is given twice`) {
		t.Errorf("one name twice: %v", err)
	}
}

func TestSplitFrom(t *testing.T) {
	for from, want := range map[string]string{
		"shop=127.0.0.1:5":                           "shop 127.0.0.1:5",
		"us.example.com:443,eu.example.com:443":      "us.example.com:443 us.example.com:443,eu.example.com:443",
		"srv:///shop.example.com?refresh=9s":         "shop.example.com srv:///shop.example.com?refresh=9s",
		"kubernetes:///web.shop:grpc":                "web.shop kubernetes:///web.shop:grpc",
		"web=kubernetes:///web.shop:grpc?refresh=9s": "web kubernetes:///web.shop:grpc?refresh=9s",
	} {
		name, target, err := splitFrom(from)
		if got := name + " " + target; err != nil || got != want {
			t.Errorf("--from %s is %q, %v, want %q", from, got, err, want)
		}
	}
}
