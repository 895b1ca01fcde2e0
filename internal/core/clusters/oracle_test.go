package clusters

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func paths(graph map[string]Cluster, depth map[string]int, path []string) (ends []string, hasCycle bool) {
	name := path[len(path)-1]
	if slices.Contains(path[:len(path)-1], name) {
		return nil, true
	}
	if depth[name] > MaxDepth {
		return nil, false
	}
	children := graph[name].Children
	if len(children) == 0 {
		return []string{name}, false
	}
	for _, child := range children {
		found, cycleBelow := paths(graph, depth, append(slices.Clone(path), child))
		ends, hasCycle = append(ends, found...), hasCycle || cycleBelow
	}
	return ends, hasCycle
}

// depths returns the number of clusters on the shortest path to each cluster.
func depths(graph map[string]Cluster, first string) map[string]int {
	depth := map[string]int{first: 1}
	for range graph {
		for name, c := range graph {
			for _, child := range c.Children {
				if d := depth[name]; d > 0 && (depth[child] == 0 || d+1 < depth[child]) {
					depth[child] = d + 1
				}
			}
		}
	}
	return depth
}

func TestAgainstAllPaths(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := []string{"a", "b", "c", "d", "e", "f"}
		graph := make(map[string]Cluster)
		for _, name := range names {
			c := Cluster{}
			switch rapid.IntRange(0, 5).Draw(t, "kind of "+name) {
			case 0:
				c.Err = errors.New("bad")
			case 1:
				c.Waiting = true
			case 2, 3, 4:
				c.Children = rapid.SliceOfN(rapid.SampledFrom(names), 1, 4).Draw(t, "children of "+name)
			}
			graph[name] = c
		}
		lookups := make(map[string]int)
		list, lookedUp := Resolve("a", func(name string) Cluster {
			lookups[name]++
			return graph[name]
		})
		ends, hasCycle := paths(graph, depths(graph, "a"), []string{"a"})
		var want, got []string
		for _, end := range ends {
			if !slices.Contains(want, end) {
				want = append(want, end)
			}
		}
		cycles := 0
		for _, e := range list {
			c := graph[e.Name]
			switch {
			case len(c.Children) > 0:
				cycles++
				if e.Err == nil || e.Waiting {
					t.Fatalf("the aggregate %s is an entry: %+v", e.Name, e)
				}
			case !errors.Is(e.Err, c.Err), e.Waiting != c.Waiting:
				t.Fatalf("%+v, want error %v, waiting %v", e, c.Err, c.Waiting)
			default:
				got = append(got, e.Name)
			}
			if e.Parent != "" && !slices.Contains(graph[e.Parent].Children, e.Name) || e.Parent == "" && e.Name != "a" {
				t.Fatalf("%+v has a wrong parent or index", e)
			}
		}
		if !slices.Equal(got, want) {
			t.Fatalf("list %v, want %v", got, want)
		}
		if hasCycle != (cycles > 0) {
			t.Fatalf("%d loops, want some: %v", cycles, hasCycle)
		}
		if len(list) == 0 || len(lookedUp) != len(lookups) {
			t.Fatalf("%d entries, requested %v, counted %v", len(list), lookedUp, lookups)
		}
		for name, n := range lookups {
			if n != 1 {
				t.Fatalf("requested %s %d times", name, n)
			}
		}
	})
}

func FuzzGraph(f *testing.F) {
	f.Add([]byte{1, 2, 3, 0, 4, 4, 9}, uint8(3))
	f.Add(make([]byte, 3000), uint8(40))
	f.Add(slices.Repeat([]byte{4, 5, 6, 7}, 60), uint8(4)) // too many paths to walk each of them
	f.Fuzz(func(t *testing.T, bytes []byte, width uint8) {
		find := func(name string) Cluster {
			var n int
			fmt.Sscan(name, &n)
			var children []string
			for i := range int(width) {
				if offset := n*int(width) + i; offset >= 0 && offset < len(bytes) {
					children = append(children, fmt.Sprint(offset/int(width)+int(bytes[offset])-3))
				}
			}
			return Cluster{Children: children}
		}
		list, asked := Resolve("0", find)
		if len(list) == 0 || len(asked) > MaxClusters || len(list) > 2*MaxClusters+1 {
			t.Fatalf("%d entries of %d clusters", len(list), len(asked))
		}
		seen := make(map[string]bool)
		for _, e := range list {
			if seen[e.Name] {
				t.Fatalf("%s is listed twice", e.Name)
			}
			seen[e.Name] = true
		}
	})
}

// TestDepthAgainstAllPaths puts the random graphs at the end of a chain of aggregates, so that some
// paths are too deep.
func TestDepthAgainstAllPaths(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := []string{"a", "b", "c", "d", "e", "f", "g"}
		graph := make(map[string]Cluster)
		for i, name := range names {
			c := Cluster{}
			if i < len(names)-2 && rapid.IntRange(0, 4).Draw(t, "kind of "+name) > 0 {
				c.Children = rapid.SliceOfN(rapid.SampledFrom(names), 1, 3).Draw(t, "children of "+name)
			}
			graph[name] = c
		}
		chain := rapid.IntRange(10, 15).Draw(t, "above")
		for n := range chain {
			graph[fmt.Sprint(n)] = Cluster{Children: []string{fmt.Sprint(n + 1), rapid.SampledFrom(names).Draw(t, "beside")}}
		}
		graph[fmt.Sprint(chain)] = Cluster{Children: names}
		ends, _ := paths(graph, depths(graph, "0"), []string{"0"})
		var want, got []string
		for _, end := range ends {
			if !slices.Contains(want, end) {
				want = append(want, end)
			}
		}
		list, asked := Resolve("0", func(name string) Cluster { return graph[name] })
		seen := make(map[string]bool)
		for _, e := range list {
			if e.Err == nil {
				got = append(got, e.Name)
			}
			if seen[e.Name] {
				t.Fatalf("%s is listed twice", e.Name)
			}
			seen[e.Name] = true
		}
		if !slices.Equal(got, want) {
			t.Fatalf("list %v, want %v", got, want)
		}
		for i, name := range asked {
			if slices.Contains(asked[:i], name) {
				t.Fatalf("requested %s twice", name)
			}
		}
	})
}
