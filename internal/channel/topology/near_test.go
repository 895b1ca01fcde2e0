package topology

import (
	"fmt"
	"strings"
	"testing"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/net/location"
)

// nearLocality parses "region/zone*weight:=address>zone>n=node address!". ">" begins a hint,
// and "!" marks an unhealthy endpoint.
func nearLocality(text string) discovery.Locality {
	name, endpoints, _ := strings.Cut(text, ":=")
	var l discovery.Locality
	name, weight, _ := strings.Cut(name, "*")
	l.Region, l.Zone, _ = strings.Cut(strings.TrimSpace(name), "/")
	fmt.Sscan(weight, &l.Weight)
	for word := range strings.FieldsSeq(endpoints) {
		var e discovery.Endpoint
		if word, isUnhealthy := strings.CutSuffix(word, "!"); isUnhealthy {
			e.Health = 3
			e.Addresses = []string{word}
		} else {
			parts := strings.Split(word, ">")
			e.Addresses = []string{parts[0]}
			for _, hint := range parts[1:] {
				if name, isNode := strings.CutPrefix(hint, "n="); isNode {
					e.ForNodes = append(e.ForNodes, name)
				} else {
					e.ForZones = append(e.ForZones, hint)
				}
			}
		}
		if !strings.Contains(e.Addresses[0], ":") {
			e.Addresses[0] = "10.0.0." + e.Addresses[0] + ":1"
		}
		l.Endpoints = append(l.Endpoints, e)
	}
	return l
}

func nearAnswer(priorities ...string) *discovery.Answer {
	a := &discovery.Answer{}
	for _, text := range priorities {
		var p discovery.Priority
		for l := range strings.SplitSeq(text, ";") {
			p.Localities = append(p.Localities, nearLocality(l))
		}
		a.Priorities = append(a.Priorities, p)
	}
	return a
}

// describe describes each group in one line: "priority name: region/zone*weight 1 2;". The weight is left
// out if it is that of the endpoints.
func describe(groups []group) (lines []string) {
	for _, g := range groups {
		line := fmt.Sprintf("%d %s:", g.sourcePriority, g.name)
		for _, l := range g.Localities {
			line += " " + NameOf(&l)
			sum := 0.0
			for k := range l.Endpoints {
				sum += usableWeight(&l.Endpoints[k])
			}
			if float64(l.Weight) != max(1, sum) {
				line += fmt.Sprintf("*%d", l.Weight)
			}
			for _, e := range l.Endpoints {
				line += " " + strings.TrimSuffix(strings.TrimPrefix(e.Addresses[0], "10.0.0."), ":1")
			}
			line += ";"
		}
		lines = append(lines, line)
	}
	return lines
}

func TestNearGroups(t *testing.T) {
	home := location.Location{Region: "r", Zone: "a", Node: "n"}
	const three = "r/a:=1 2 3; r/b:=4 5; s/c:=6"
	for name, test := range map[string]struct {
		near   Near
		answer []string
		want   []string
	}{
		"no preference":                          {Near{}, []string{three}, []string{"0 : r/a 1 2 3; r/b 4 5; s/c 6;"}},
		"no location":                            {Near{Prefer: "zone"}, []string{three}, []string{"0 : r/a 1 2 3; r/b 4 5; s/c 6;"}},
		"zone":                                   {Near{Prefer: "zone", Place: home}, []string{three}, []string{"0 same zone: r/a 1 2 3;", "0 same region: r/b 4 5;", "0 elsewhere: s/c 6;"}},
		"each priority":                          {Near{Prefer: "zone", Place: home}, []string{"r/a:=1; r/b:=2", "r/b:=3; r/a:=4", "s/c:=5"}, []string{"0 same zone: r/a 1;", "0 same region: r/b 2;", "1 same zone: r/a 4;", "1 same region: r/b 3;", "2 : s/c 5;"}},
		"a zone of the name in another region":   {Near{Prefer: "zone", Place: home}, []string{"s/a:=1; r/b:=2"}, []string{"0 same region: r/b 2;", "0 elsewhere: s/a 1;"}},
		"a zone without a region":                {Near{Prefer: "zone", Place: home}, []string{"/a:=1; /b:=2"}, []string{"0 same zone: /a 1;", "0 elsewhere: /b 2;"}},
		"a zone of which none can take calls":    {Near{Prefer: "zone", Place: home}, []string{"r/a:=1!; r/b:=2; s/c:=3"}, []string{"0 same region: r/a 1; r/b 2;", "0 elsewhere: s/c 3;"}},
		"a zone without endpoints":               {Near{Prefer: "zone", Place: home}, []string{"r/a:=; r/b:=2; s/c:=3"}, []string{"0 same region: r/a; r/b 2;", "0 elsewhere: s/c 3;"}},
		"no endpoints":                           {Near{Prefer: "zone", Place: home}, []string{"r/a:=; s/c:="}, []string{"0 : r/a; s/c;"}},
		"weights of whole localities stay":       {Near{Prefer: "zone", Place: home}, []string{"r/a*3:=1; r/b*5:=2; r/d*7:=3"}, []string{"0 same zone: r/a*3 1;", "0 same region: r/b*5 2; r/d*7 3;"}},
		"the weight of a split locality":         {Near{Prefer: "hints", Place: home}, []string{"r/a*1:=1>a 2>b 3>b 4>b; r/b*1:=5>a"}, []string{"0 hinted: r/a*16384 1; r/b*65536 5;", "0 not hinted: r/a*49152 2 3 4;"}},
		"one that cannot take calls next to it":  {Near{Prefer: "hints", Place: home}, []string{"r/a*1:=1>a 2>b; r/b*5:=3!"}, []string{"0 hinted: r/a*32768 1;", "0 not hinted: r/a*32768 2; r/b*327680 3;"}},
		"hints for zones":                        {Near{Prefer: "hints", Place: home}, []string{"r/a:=1>a 2>b>a 3>b"}, []string{"0 hinted: r/a 1 2;", "0 not hinted: r/a 3;"}},
		"one without a hint":                     {Near{Prefer: "hints", Place: home}, []string{"r/a:=1>a 2"}, []string{"0 : r/a 1 2;"}},
		"one that cannot take calls has no hint": {Near{Prefer: "hints", Place: home}, []string{"r/a:=1>a 2! 3>b"}, []string{"0 hinted: r/a 1;", "0 not hinted: r/a 2 3;"}},
		"hints for other zones":                  {Near{Prefer: "hints", Place: home}, []string{"r/a:=1>b 2>c"}, []string{"0 : r/a 1 2;"}},
		"hints for nodes come first":             {Near{Prefer: "hints", Place: home}, []string{"r/a:=1>a>n=m 2>b>n=n"}, []string{"0 hinted: r/a 2;", "0 not hinted: r/a 1;"}},
		"hints for other nodes, then for zones":  {Near{Prefer: "hints", Place: home}, []string{"r/a:=1>a>n=m 2>b>n=o"}, []string{"0 hinted: r/a 1;", "0 not hinted: r/a 2;"}},
	} {
		answer, err := Check(nearAnswer(test.answer...), nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := describe(test.near.split(answer)); strings.Join(got, "\n") != strings.Join(test.want, "\n") {
			t.Errorf("%s:\n%s\nwant\n%s", name, strings.Join(got, "\n"), strings.Join(test.want, "\n"))
		}
	}
}
