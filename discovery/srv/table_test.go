package srv

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/channel/topology"
)

// answerOf parses entries that are separated by semicolons. An entry "PRIORITY WEIGHT HOST:PORT" is
// a record. An entry "HOST = ADDRESS ADDRESS" is the result of a lookup. The lookup of a host
// without such an entry has failed.
func answerOf(text string) answer {
	a := answer{addresses: make(map[string][]netip.Addr)}
	for entry := range strings.SplitSeq(text, ";") {
		if host, addresses, ok := strings.Cut(entry, "="); ok {
			host = strings.TrimSpace(host)
			a.addresses[nameOf("ip4", host)], a.addresses[nameOf("ip6", host)] = nil, nil
			for address := range strings.FieldsSeq(addresses) {
				a.addresses[nameOf("ip4", host)] = append(a.addresses[nameOf("ip4", host)], netip.MustParseAddr(address))
			}
			continue
		}
		var r record
		if n, _ := fmt.Sscanf(strings.Replace(entry, ":", " ", 1), "%d %d %s %d", &r.priority, &r.weight, &r.host, &r.port); n == 4 {
			a.records = append(a.records, r)
		}
	}
	return a
}

func formatAnswer(a discovery.Answer) string {
	var priorities []string
	for _, p := range a.Priorities {
		l := p.Localities[0]
		s := strings.TrimPrefix(l.Region, "SRV priority ") + ":"
		for _, e := range l.Endpoints {
			s += fmt.Sprintf(" %s*%d", strings.Join(e.Addresses, "+"), e.Weight)
		}
		priorities = append(priorities, s)
	}
	return strings.Join(priorities, "; ")
}

func TestTable(t *testing.T) {
	for name, steps := range map[string][]string{
		"priority becomes priority, weight the endpoint's": {
			"10 3 a:1; 10 1 b:1; 20 5 c:2; a = 10.0.0.1; b = 10.0.0.2; c = 10.0.0.3",
			"10: 10.0.0.1:1*3 10.0.0.2:1*1; 20: 10.0.0.3:2*5",
		},
		"each address of a target is an endpoint": {
			"0 1 a:1; a = 10.0.0.1 2001:db8::1 ::ffff:10.0.0.2",
			"0: 10.0.0.1:1*1 [2001:db8::1]:1*1 10.0.0.2:1*1",
		},
		"the addresses of a target share the weight of its record": {
			"0 3 a:1; 0 1 b:1; 1 5 c:1; 1 5 d:1; a = 10.0.0.1 10.0.0.2 10.0.0.3; b = 10.0.1.1 10.0.1.2; c = 10.0.2.1 10.0.2.2; d = 10.0.3.1",
			"0: 10.0.0.1:1*6 10.0.0.2:1*6 10.0.0.3:1*6 10.0.1.1:1*3 10.0.1.2:1*3; 1: 10.0.2.1:1*5 10.0.2.2:1*5 10.0.3.1:1*10",
		},
		"so they do with weight 0": {
			"0 3 a:1; 0 0 b:1; a = 10.0.0.1 10.0.0.2; b = 10.0.1.1 10.0.1.2",
			"0: 10.0.0.1:1*30 10.0.0.2:1*30 10.0.1.1:1*1 10.0.1.2:1*1",
		},
		"an address of several records has the sum of its shares": {
			"0 3 a:1; 0 2 b:1; 0 4 b:2; a = 10.0.0.1; b = 10.0.0.1 10.0.0.2",
			"0: 10.0.0.1:1*8 10.0.0.2:1*2 10.0.0.1:2*4 10.0.0.2:2*4",
		},
		"weight 0 is a tenth of 1, or like the others": {
			"0 3 a:1; 0 0 b:1; 1 0 c:1; 1 0 d:1; a = 10.0.0.1; b = 10.0.0.2; c = 10.0.0.3; d = 10.0.0.4",
			"0: 10.0.0.1:1*30 10.0.0.2:1*1; 1: 10.0.0.3:1*1 10.0.0.4:1*1",
		},
		"an address twice counts at its highest priority": {
			"0 1 a:1; 1 1 b:1; 1 1 a:2; a = 10.0.0.1; b = 10.0.0.1 10.0.0.2",
			"0: 10.0.0.1:1*1; 1: 10.0.0.2:1*1 10.0.0.1:2*1",
		},
		"records that differ in their weight alone are added up": {
			"0 3 a:1; 0 1 a:1; 1 1 a:1; a = 10.0.0.1",
			"0: 10.0.0.1:1*4",
			"0 1 a:1; 0 3 a:1; 1 1 a:1; a = 10.0.0.1",
			"0: 10.0.0.1:1*4",
		},
		"a priority without an address is none": {
			"0 1 a:1; 1 1 b:1; a =; b = 10.0.0.2",
			"1: 10.0.0.2:1*1",
		},
		"a record leaves after two answers, a new weight counts at once": {
			"0 1 a:1; 0 1 b:1; a = 10.0.0.1; b = 10.0.0.2", "0: 10.0.0.1:1*1 10.0.0.2:1*1",
			"0 7 b:1; b = 10.0.0.2", "0: 10.0.0.1:1*1 10.0.0.2:1*7",
			"0 7 b:1; b = 10.0.0.2", "0: 10.0.0.2:1*7",
		},
		"a record may move to another priority": {
			"0 1 a:1; 1 1 b:1; a = 10.0.0.1; b = 10.0.0.2", "0: 10.0.0.1:1*1; 1: 10.0.0.2:1*1",
			"1 1 a:1; 0 1 b:1; a = 10.0.0.1; b = 10.0.0.2", "0: 10.0.0.2:1*1; 1: 10.0.0.1:1*1",
		},
		"an address leaves after two answers": {
			"0 1 a:1; a = 10.0.0.1 10.0.0.2", "0: 10.0.0.1:1*1 10.0.0.2:1*1",
			"0 1 a:1; a = 10.0.0.2", "0: 10.0.0.1:1*1 10.0.0.2:1*1",
			"0 1 a:1; a = 10.0.0.2", "0: 10.0.0.2:1*1",
		},
		"a target that nobody can say the addresses of keeps them": {
			"0 1 a:1; 0 1 b:1; a = 10.0.0.1; b = 10.0.0.2", "0: 10.0.0.1:1*1 10.0.0.2:1*1",
			"0 1 a:1; 0 1 b:1; b = 10.0.0.2", "0: 10.0.0.1:1*1 10.0.0.2:1*1",
			"0 1 a:1; 0 1 b:1; b = 10.0.0.2", "0: 10.0.0.1:1*1 10.0.0.2:1*1",
			"0 1 a:1; 0 1 b:1; a =; b = 10.0.0.2", "0: 10.0.0.1:1*1 10.0.0.2:1*1",
			"0 1 a:1; 0 1 b:1; a =; b = 10.0.0.2", "0: 10.0.0.2:1*1",
		},
		"no service, after two answers": {
			"0 1 a:1; a = 10.0.0.1", "0: 10.0.0.1:1*1",
			"", "0: 10.0.0.1:1*1",
			"", "",
		},
		"no service from the beginning": {"", ""},
	} {
		table := table{removeAfter: 2}
		for i := 0; i < len(steps); i += 2 {
			answer := table.apply("_grpc._tcp.x", answerOf(steps[i]))
			if got := formatAnswer(answer); got != steps[i+1] {
				t.Errorf("%s: after %q there is\n%s\nwant\n%s", name, steps[i], got, steps[i+1])
			}
			if _, err := new(topology.Translator).Translate(&answer); err != nil {
				t.Errorf("%s: after %q: %v", name, steps[i], err)
			}
		}
	}
}

// Records stay in the table for a while after they were removed from DNS. The sum of the weights
// must nevertheless not exceed the limit of a locality, even with the largest possible DNS
// messages, and each address must have a share, even if the counts have no small common multiple.
func TestWeightSum(t *testing.T) {
	for _, n := range []int{1, 3000, 7000} {
		table := table{known: make(map[string]knownName)}
		records := make([]record, n)
		for i := range records {
			records[i] = record{host: fmt.Sprint(i), port: 1, weight: 65535 * uint64(min(i, 1))}
			var known knownName
			var addresses []netip.Addr
			for j := range 1 + (i+63)%64 {
				addresses = append(addresses, netip.AddrFrom4([4]byte{10, byte(i >> 8), byte(i), byte(j)}))
			}
			known.addresses.Next(1, addresses, netip.Addr.Unmap)
			table.known[nameOf("ip4", records[i].host)] = known
		}
		var sum uint64
		shares := make(map[string]uint64)
		for _, e := range table.endpoints(records, make(map[netip.AddrPort]bool)) {
			sum += uint64(e.Weight)
			shares[e.Hostname] += uint64(e.Weight)
			if e.Weight == 0 {
				t.Fatalf("%d records: an address of %s has no share", n, e.Hostname)
			}
		}
		if sum > 1<<32-1 {
			t.Errorf("the weights of %d records sum to %d", n, sum)
		}
		if one, many := shares["1"], shares["64"]; n > 1 && (many < one*99/100 || many > one*101/100) {
			t.Errorf("%d records: two of equal weight have %d with one address and %d with 64", n, one, many)
		}
	}
}
