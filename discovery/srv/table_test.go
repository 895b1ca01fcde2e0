package srv

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/topology"
)

// answerOf parses entries that are separated by semicolons. An entry "PRIORITY WEIGHT HOST:PORT" is
// a record. An entry "HOST = ADDRESS ADDRESS" is the result of a lookup. The lookup of a host
// without such an entry has failed.
func answerOf(text string) answer {
	a := answer{hosts: make(map[string]hostAddresses)}
	for entry := range strings.SplitSeq(text, ";") {
		if host, addresses, ok := strings.Cut(entry, "="); ok {
			f := hostAddresses{succeeded: [2]bool{true, true}}
			for address := range strings.FieldsSeq(addresses) {
				f.addresses = append(f.addresses, netip.MustParseAddr(address))
			}
			a.hosts[strings.TrimSpace(host)] = f
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
		"all addresses of a target are one endpoint": {
			"0 1 a:1; a = 10.0.0.1 2001:db8::1 ::ffff:10.0.0.2",
			"0: 10.0.0.1:1+[2001:db8::1]:1+10.0.0.2:1*1",
		},
		"weight 0 is a tenth of 1, or like the others": {
			"0 3 a:1; 0 0 b:1; 1 0 c:1; 1 0 d:1; a = 10.0.0.1; b = 10.0.0.2; c = 10.0.0.3; d = 10.0.0.4",
			"0: 10.0.0.1:1*30 10.0.0.2:1*1; 1: 10.0.0.3:1*1 10.0.0.4:1*1",
		},
		"an address twice counts at its highest priority": {
			"0 1 a:1; 1 1 b:1; 1 1 a:2; a = 10.0.0.1; b = 10.0.0.1 10.0.0.2",
			"0: 10.0.0.1:1*1; 1: 10.0.0.2:1*1 10.0.0.1:2*1",
		},
		"a record twice counts once": {
			"0 3 a:1; 0 1 a:1; 1 1 a:1; a = 10.0.0.1",
			"0: 10.0.0.1:1*3",
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
			"0 1 a:1; a = 10.0.0.1 10.0.0.2", "0: 10.0.0.1:1+10.0.0.2:1*1",
			"0 1 a:1; a = 10.0.0.2", "0: 10.0.0.1:1+10.0.0.2:1*1",
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
// messages.
func TestWeightSum(t *testing.T) {
	for _, n := range []int{3000, 7000, 100_000} {
		records := make([]record, n)
		for i := range records {
			records[i].weight = 65535
		}
		records[0].weight = 0
		var sum uint64
		for _, w := range weightsOf(records) {
			sum += uint64(w)
		}
		if sum > 1<<32-1 {
			t.Errorf("the weights of %d records sum to %d", n, sum)
		}
	}
}
