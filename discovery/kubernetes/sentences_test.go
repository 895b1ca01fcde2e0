package kubernetes

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/understudy-lb/understudy/discovery"
)

// sliceOf parses a slice. labels is the name of the Service, optionally followed by a space and the
// JSON of more labels. rest is the JSON of all other fields.
func sliceOf(t *testing.T, name, kind, labels, rest string) *slice {
	t.Helper()
	service, more, _ := strings.Cut(labels, " ")
	text := fmt.Sprintf(`{"metadata":{"name":%q,"labels":{"kubernetes.io/service-name":%q%s}},"addressType":%q,%s}`, name, service, more, kind, rest)
	return sliceOfText(t, text)
}

func sliceOfText(t interface{ Fatalf(string, ...any) }, text string) *slice {
	o := new(object)
	if err := json.Unmarshal([]byte(text), o); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return o.slice()
}

func formatAnswer(a discovery.Answer) string {
	var b strings.Builder
	for i, p := range a.Priorities {
		for _, l := range p.Localities {
			for _, e := range l.Endpoints {
				fmt.Fprintf(&b, "%d%s/%s=%v", i, l.Zone, strings.Join(e.Addresses, "+"), e.Health)
				if e.Weight != 1 {
					fmt.Fprintf(&b, "*%d", e.Weight)
				}
				for _, z := range e.ForZones {
					b.WriteString(">" + z)
				}
				for _, n := range e.ForNodes {
					b.WriteString(">>" + n)
				}
				b.WriteString(" ")
			}
		}
	}
	return strings.TrimSpace(b.String())
}

const (
	notReady    = `"conditions":{"ready":false}`
	terminating = `"conditions":{"ready":false,"serving":true,"terminating":true}`
	notServing  = `"conditions":{"ready":false,"serving":false,"terminating":true}`
)

// Each case is a rule of the documentation about the endpoints or the port in use.
func TestDocumentedRules(t *testing.T) {
	const port80 = `"ports":[{"name":"grpc","port":80}]`
	v4 := func(endpoints, ports string) string { return "web|IPv4|" + endpoints + "|" + ports }
	for _, c := range []struct {
		sentence string
		query    query
		slices   []string // for each slice: labels, address type, endpoints and ports
		want     string
		note     string
		why      string
		err      string
	}{
		{sentence: "the slices of all Services of the target are used",
			query:  query{services: "web,web-canary"},
			slices: []string{v4(`{"addresses":["10.0.0.1"]}`, port80), `web-canary|IPv4|{"addresses":["10.0.0.2"]}|` + port80},
			want:   "0/10.0.0.1:80=healthy 0/10.0.0.2:80=healthy"},
		{sentence: "an endpoint in two slices is identified by targetRef.uid, even if its addresses differ",
			slices: []string{v4(`{"addresses":["10.0.0.1"],"targetRef":{"uid":"u"},`+notReady+`}`, port80), v4(`{"addresses":["10.0.0.2"],"targetRef":{"uid":"u"}}`, port80)},
			want:   "0/10.0.0.2:80=healthy"},
		{sentence: "without a uid, it is identified by address",
			slices: []string{v4(`{"addresses":["10.0.0.1"],`+notReady+`}`, port80), v4(`{"addresses":["10.0.0.1"]}`, port80)},
			want:   "0/10.0.0.1:80=healthy"},
		{sentence: "two ports of one pod are two endpoints",
			slices: []string{v4(`{"addresses":["10.0.0.1"],"targetRef":{"uid":"u"}}`, port80), v4(`{"addresses":["10.0.0.1"],"targetRef":{"uid":"u"}}`, `"ports":[{"name":"grpc","port":81}]`)},
			want:   "0/10.0.0.1:80=healthy 0/10.0.0.1:81=healthy"},
		{sentence: "if conditions differ, the better one is used: serving and terminating before not ready",
			slices: []string{v4(`{"addresses":["10.0.0.1"],`+notReady+`}`, port80), v4(`{"addresses":["10.0.0.1"],`+terminating+`}`, port80)},
			want:   "0/10.0.0.1:80=healthy"},
		{sentence: "two uids with one address: the ready one is used",
			slices: []string{v4(`{"addresses":["10.0.0.1"],"targetRef":{"uid":"a"},"zone":"old",`+terminating+`},{"addresses":["10.0.0.1"],"targetRef":{"uid":"b"},"zone":"new"}`, port80)},
			want:   "0new/10.0.0.1:80=healthy"},
		{sentence: "null conditions equal absent ones",
			slices: []string{v4(`{"addresses":["10.0.0.1"],"conditions":{"ready":null,"serving":null,"terminating":null}}`, port80)},
			want:   "0/10.0.0.1:80=healthy"},
		{sentence: "serving nil is true",
			slices: []string{v4(`{"addresses":["10.0.0.1"],"conditions":{"ready":false,"terminating":true}}`, port80)},
			want:   "0/10.0.0.1:80=healthy"},
		{sentence: "an endpoint that does not serve is not used",
			slices: []string{v4(`{"addresses":["10.0.0.1"],`+notServing+`}`, port80)},
			want:   "", why: "Service web.shop has no pods that serve"},
		{sentence: "terminating=never: terminating endpoints are not used, even if none is ready",
			query:  query{neverTerminating: true},
			slices: []string{v4(`{"addresses":["10.0.0.1"],`+terminating+`}`, port80)},
			want:   "0/10.0.0.1:80=draining"},
		{sentence: "pods that are not ready are unhealthy, so that their zone stays",
			slices: []string{v4(`{"addresses":["10.0.0.1"],"zone":"a",`+notReady+`},{"addresses":["10.0.0.2"],"zone":"b"}`, port80)},
			want:   "0a/10.0.0.1:80=unhealthy 0b/10.0.0.2:80=healthy"},
		{sentence: "slices of IPv4 and IPv6 with the same uid are one endpoint with two addresses",
			slices: []string{v4(`{"addresses":["10.0.0.1"],"targetRef":{"uid":"u"}}`, port80), `web|IPv6|{"addresses":["fd00::1"],"targetRef":{"uid":"u"}}|` + port80},
			want:   "0/10.0.0.1:80+[fd00::1]:80=healthy"},
		{sentence: "addressType=IPv6 leaves out the other family",
			query:  query{family: "IPv6"},
			slices: []string{v4(`{"addresses":["10.0.0.1"],"targetRef":{"uid":"u"}}`, port80), `web|IPv6|{"addresses":["fd00::1"],"targetRef":{"uid":"u"}}|` + port80},
			want:   "0/[fd00::1]:80=healthy"},
		{sentence: "only the first address of an endpoint is used",
			slices: []string{v4(`{"addresses":["10.0.0.1","10.0.0.9"]}`, port80)}, want: "0/10.0.0.1:80=healthy"},
		{sentence: "FQDN slices are left out with a note",
			slices: []string{`web|FQDN|{"addresses":["db.example.com"]}|` + port80},
			want:   "", note: `slice s0 has the address type "FQDN", want IPv4 or IPv6`, why: `no pods that serve; slice s0 has the address type "FQDN"`},
		{sentence: "a port name selects the number of each slice", query: query{port: "web"},
			slices: []string{v4(`{"addresses":["10.0.0.1"]}`, `"ports":[{"name":"grpc","port":1},{"name":"web","port":2}]`), v4(`{"addresses":["10.0.0.2"]}`, `"ports":[{"name":"web","port":3}]`)},
			want:   "0/10.0.0.1:2=healthy 0/10.0.0.2:3=healthy"},
		{sentence: "a port number is that of the pod", query: query{port: "2"},
			slices: []string{v4(`{"addresses":["10.0.0.1"]}`, `"ports":[{"name":"grpc","port":1},{"name":"web","port":2}]`)}, want: "0/10.0.0.1:2=healthy"},
		{sentence: "the default port is the only one", slices: []string{v4(`{"addresses":["10.0.0.1"]}`, `"ports":[{"name":"x","port":7},{"name":"u","port":8,"protocol":"UDP"}]`)}, want: "0/10.0.0.1:7=healthy"},
		{sentence: "of several ports, the default is the one named grpc", slices: []string{v4(`{"addresses":["10.0.0.1"]}`, `"ports":[{"name":"a","port":1,"appProtocol":"grpc"},{"name":"grpc","port":2}]`)}, want: "0/10.0.0.1:2=healthy"},
		{sentence: "without that, the default is the one whose appProtocol is grpc", slices: []string{v4(`{"addresses":["10.0.0.1"]}`, `"ports":[{"name":"a","port":1},{"name":"b","port":2,"appProtocol":"grpc"}]`)}, want: "0/10.0.0.1:2=healthy"},
		{sentence: "without that, the default is the one whose appProtocol is kubernetes.io/h2c", slices: []string{v4(`{"addresses":["10.0.0.1"]}`, `"ports":[{"name":"a","port":1},{"name":"b","port":2,"appProtocol":"kubernetes.io/h2c"}]`)}, want: "0/10.0.0.1:2=healthy"},
		{sentence: "without a default port, an error lists the ports", slices: []string{v4(`{"addresses":["10.0.0.1"]}`, `"ports":[{"name":"a","port":1,"appProtocol":"grpc"},{"name":"b","port":2,"appProtocol":"grpc"}]`)}, err: "the target gives no port; want one of a:1, b:2"},
		{sentence: "an unknown port name is an error that lists the ports", query: query{port: "z"}, slices: []string{v4(`{"addresses":["10.0.0.1"]}`, `"ports":[{"name":"a","port":1}]`)}, err: `no port has the name "z", want one of a:1`},
		{sentence: "a port number that no slice lists is used, with a note that lists the ports", query: query{port: "443"},
			slices: []string{v4(`{"addresses":["10.0.0.1"]}`, port80)}, want: "0/10.0.0.1:443=healthy", note: "port 443 is not a port of the pods (grpc:80); want the pod's port, not the Service's"},
		{sentence: "with a headless slice, a port number is used without a note", query: query{port: "7"}, slices: []string{v4(`{"addresses":["10.0.0.1"]}`, `"ports":null`)}, want: "0/10.0.0.1:7=healthy"},
		{sentence: "with a headless slice, no port is an error", slices: []string{v4(`{"addresses":["10.0.0.1"]}`, `"ports":[]`)}, err: "it lists no TCP port; want a port number in the target"},
		{sentence: "a slice without the port does not affect other slices", query: query{port: "grpc"},
			slices: []string{v4(`{"addresses":["10.0.0.1"]}`, `"ports":[{"name":"a","port":1}]`), v4(`{"addresses":["10.0.0.2"]}`, port80)},
			want:   "0/10.0.0.2:80=healthy", note: `slice s0: no port has the name "grpc"`},
		{sentence: "an endpoint without a valid address is left out with a note",
			slices: []string{v4(`{"addresses":["x"]},{"addresses":["10.0.0.1"]},{"addresses":[]}`, port80)}, want: "0/10.0.0.1:80=healthy",
			note: `slice s0 has the address "x", want one of IPv4`},
		{sentence: "an empty slice means no pods", slices: []string{v4("", `"ports":null`)}, want: "", why: "Service web.shop has no pods that serve"},
		{sentence: "no slice is a failure with the possible reasons", err: "no EndpointSlice of web.shop: there is no such Service, or it has the type ExternalName, or no selector"},
		{sentence: "endpoints have nodes and hints, and zones are localities",
			slices: []string{v4(`{"addresses":["10.0.0.1"],"nodeName":"n","zone":"a","hints":{"forZones":[{"name":"a"},{"name":"b"}],"forNodes":[{"name":"n"}]}}`, port80)},
			want:   "0a/10.0.0.1:80=healthy>a>b>>n"},
		{sentence: "labels of the Service set weights and priorities",
			query: query{services: "web,web-canary"},
			slices: []string{`web ,"understudy.dev/priority":"1","understudy.dev/weight":"9"|IPv4|{"addresses":["10.0.0.1"]}|` + port80,
				`web-canary|IPv4|{"addresses":["10.0.0.2"]}|` + port80},
			want: "0/10.0.0.2:80=healthy 1/10.0.0.1:80=healthy*9"},
		{sentence: "labels out of range are ignored with a note",
			slices: []string{`web ,"understudy.dev/priority":"128"|IPv4|{"addresses":["10.0.0.1"]}|` + port80}, want: "0/10.0.0.1:80=healthy",
			note: `slice s0 has the label understudy.dev/priority="128", want a number from 0 to 127`},
		{sentence: "weights out of range are ignored with a note",
			slices: []string{`web ,"understudy.dev/weight":"1001"|IPv4|{"addresses":["10.0.0.1"]}|` + port80}, want: "0/10.0.0.1:80=healthy",
			note: `slice s0 has the label understudy.dev/weight="1001", want a number from 1 to 1000`},
		{sentence: "if one of several Services has no slice, there is a note", query: query{services: "web,web-canary"}, slices: []string{v4(`{"addresses":["10.0.0.1"]}`, port80)},
			want: "0/10.0.0.1:80=healthy", note: "Service web-canary has no EndpointSlice"},
	} {
		t.Run(c.sentence, func(t *testing.T) {
			of := &snapshot{existing: make(map[string]*slice)}
			for i, text := range c.slices {
				parts := strings.SplitN(text, "|", 4)
				name := fmt.Sprint("s", i)
				of.existing[name] = sliceOf(t, name, parts[1], parts[0], `"endpoints":[`+parts[2]+`],`+parts[3])
			}
			q := c.query
			if q.namespace = "shop"; q.services == "" {
				q.services = "web"
			}
			a, err := answer(q, of)
			if text := fmt.Sprint(err); (err != nil) != (c.err != "") || !strings.Contains(text, c.err) {
				t.Fatalf("the error is %q, want %q", text, c.err)
			}
			notes := strings.Join(a.Notes, "\n")
			switch {
			case err != nil:
			case formatAnswer(a) != c.want || !a.Empty:
				t.Errorf("the answer is %q, want %q", formatAnswer(a), c.want)
			case (notes == "") != (c.note == "") || !strings.Contains(notes, c.note):
				t.Errorf("the notes are %q, want %q", notes, c.note)
			case (a.Why == "") != (c.why == "") || !strings.Contains(a.Why, c.why):
				t.Errorf("the reason is %q, want %q", a.Why, c.why)
			}
		})
	}
}
