package clusters

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
)

// TestScenarios runs the graphs in testdata/graphs. The command "list FIRST" is followed by one
// line for each cluster: "NAME: CHILD CHILD" for an aggregate, "NAME" for another cluster, "NAME !"
// and an error for one that cannot be used, and "NAME ?" for one that is not known yet. A cluster
// without a line does not exist.
func TestScenarios(t *testing.T) {
	datadriven.Walk(t, "testdata/graphs", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(_ *testing.T, d *datadriven.TestData) string {
			graph := make(map[string]Cluster)
			for line := range strings.Lines(d.Input) {
				name, children, isAggregate := strings.Cut(strings.TrimSpace(line), ":")
				name, problem, _ := strings.Cut(name, " ")
				switch {
				case isAggregate:
					graph[name] = Cluster{Children: strings.Fields(children)}
				case problem == "?":
					graph[name] = Cluster{Waiting: true}
				case problem != "":
					graph[name] = Cluster{Err: errors.New(strings.TrimPrefix(problem, "! "))}
				default:
					graph[name] = Cluster{}
				}
			}
			list, lookedUp := Resolve(d.CmdArgs[0].Key, func(name string) Cluster {
				if c, ok := graph[name]; ok {
					return c
				}
				return Cluster{Err: errors.New("there is no such cluster")}
			})
			var b strings.Builder
			for _, e := range list {
				switch {
				case e.Err != nil:
					fmt.Fprintf(&b, "%s: error: %v\n", e.Name, e.Err)
				case e.Waiting:
					fmt.Fprintf(&b, "%s: waiting\n", e.Name)
				default:
					fmt.Fprintf(&b, "%s\n", e.Name)
				}
			}
			fmt.Fprintf(&b, "asked for %s\n", strings.Join(lookedUp, " "))
			return b.String()
		})
	})
}

func TestDepth(t *testing.T) {
	chain := func(length int) func(string) Cluster {
		return func(name string) Cluster {
			var n int
			fmt.Sscanf(name, "c%d", &n)
			if n == length {
				return Cluster{}
			}
			return Cluster{Children: []string{fmt.Sprintf("c%d", n+1), fmt.Sprintf("c%d-leaf", n)}}
		}
	}
	withLeaves := func(find func(string) Cluster) func(string) Cluster {
		return func(name string) Cluster {
			if strings.HasSuffix(name, "-leaf") {
				return Cluster{}
			}
			return find(name)
		}
	}
	list, _ := Resolve("c1", withLeaves(chain(16)))
	if list[0].Name != "c16" || list[0].Err != nil || len(list) != 16 {
		t.Errorf("a chain of 16 clusters: list %v, want the last first", list)
	}
	list, lookedUp := Resolve("c1", withLeaves(chain(17)))
	if list[0].Name != "c17" || list[0].Err == nil || !strings.Contains(list[0].Err.Error(), "at depth 17, want at most 16: c1 -> c2 -> ") {
		t.Errorf("the 17th cluster in a chain: %v, want an error with the path", list[0])
	}
	for i, e := range list[2:] {
		if e.Err != nil {
			t.Errorf("entry %d: %v, want no error", i+2, e)
		}
	}
	if slices.Contains(lookedUp, "c17") {
		t.Error("the 17th cluster was requested")
	}
}

// The clusters leaf and lowest are too deep on the path that is visited first. They must be listed
// there nevertheless, because another path to each of them is short enough. The cluster below is on
// no shorter path, so it must be an error.
func TestTooDeepOnFirstPath(t *testing.T) {
	graph := map[string]Cluster{"first": {Children: []string{"c2", "leaf", "aggregate"}}, "c16": {Children: []string{"leaf", "below"}}}
	for n := 2; n < 16; n++ {
		graph[fmt.Sprintf("c%d", n)] = Cluster{Children: []string{fmt.Sprintf("c%d", n+1)}}
	}
	graph["c15"] = Cluster{Children: []string{"c16", "aggregate"}}
	graph["aggregate"] = Cluster{Children: []string{"inner"}}
	graph["inner"] = Cluster{Children: []string{"lowest", "aggregate"}}
	list, lookedUp := Resolve("first", func(name string) Cluster { return graph[name] })
	var got []string
	for _, e := range list {
		got = append(got, fmt.Sprint(e.Name, e.Err != nil))
	}
	if want := "[leaffalse belowtrue lowestfalse aggregatetrue]"; fmt.Sprint(got) != want {
		t.Fatalf("names and whether they have errors: %v, want %s", got, want)
	}
	if text := list[3].Err.Error(); !strings.Contains(text, "names itself: … -> c2 -> c3 -> ") {
		t.Errorf("error %s, want only the end of the path", text)
	}
	if len(lookedUp) != 20 {
		t.Errorf("requested %d clusters, want each once: %v", len(lookedUp), lookedUp)
	}
}

func TestWidth(t *testing.T) {
	var children []string
	for i := range 10_000 {
		children = append(children, fmt.Sprint(i))
	}
	list, lookedUp := Resolve("wide", func(name string) Cluster {
		if name == "wide" {
			return Cluster{Children: children}
		}
		return Cluster{}
	})
	if len(lookedUp) != MaxClusters || len(list) != MaxClusters {
		t.Fatalf("requested %d clusters, listed %d", len(lookedUp), len(list))
	}
	if last := list[len(list)-1]; last.Err == nil || !strings.Contains(last.Err.Error(), "more than 256 clusters") || last.Name != "255" || last.Parent != "wide" {
		t.Errorf("last entry %+v, want an error for the first omitted cluster", last)
	}
}

// Clusters that are omitted because of MaxDepth must count towards MaxClusters, too.
func TestTooDeepClustersCountTowardsMaxClusters(t *testing.T) {
	var children []string
	for i := range 10_000 {
		children = append(children, fmt.Sprint(i))
	}
	list, _ := Resolve("c1", func(name string) Cluster {
		var n int
		if fmt.Sscanf(name, "c%d", &n); n == 16 {
			return Cluster{Children: children}
		}
		return Cluster{Children: []string{fmt.Sprintf("c%d", n+1)}}
	})
	if want := MaxClusters - 16 + 1; len(list) != want { // the last entry is the error for the omitted clusters
		t.Errorf("listed %d clusters, want %d", len(list), want)
	}
}

func TestLongNamesAreShortened(t *testing.T) {
	list, _ := Resolve(strings.Repeat("x", 300), func(string) Cluster { return Cluster{Err: errors.New("no")} })
	if got, want := list[0].Err.Error(), `cluster "`+strings.Repeat("x", 100)+`": no`; got != want {
		t.Errorf("error %s, want %s", got, want)
	}
}

// A cluster that is too deep on one path, but not on another, counts once towards MaxClusters.
func TestClusterOnTwoPathsCountsOnce(t *testing.T) {
	var children []string
	for i := range 120 {
		children = append(children, fmt.Sprint("leaf", i))
	}
	graph := map[string]Cluster{"c1": {Children: []string{"c2", "x", "last"}}, "c16": {Children: children}, "x": {Children: children}}
	for n := 2; n < 16; n++ {
		graph[fmt.Sprintf("c%d", n)] = Cluster{Children: []string{fmt.Sprintf("c%d", n+1)}}
	}
	list, _ := Resolve("c1", func(name string) Cluster { return graph[name] })
	if want := len(children) + 1; len(list) != want {
		t.Errorf("listed %d clusters, want %d", len(list), want)
	}
	for _, e := range list {
		if e.Err != nil {
			t.Fatal(e.Err)
		}
	}
}
