package main

import "time"

const (
	ready       = `"ready":true,"serving":true,"terminating":false`
	terminating = `"ready":false,"serving":true,"terminating":true`
	unknown     = `"ready":null`
)

type cluster struct {
	*apiServer
	port int
}

func (c *cluster) slice(name string, endpoints ...string) { c.set(name, c.port, endpoints...) }

type scenario struct {
	before func(*cluster)
	steps  []step
}

// step is a change, after which the pods named in ready are ready.
type step struct {
	description, ready string
	change             func(*cluster)
	extraWait          time.Duration
}

func twoSlices(c *cluster) {
	c.slice("web-1", endpoint("a", ready), endpoint("b", ready))
	c.slice("web-2", endpoint("c", ready), endpoint("d", ready))
}

// scenarios are from kuberesolver 66, go-zero 5659 and OpenTelemetry contrib 50436.
var scenarios = []scenario{
	{twoSlices, []step{
		{"two slices of two pods", "a b c d", nil, 0},
		{"b leaves the first slice", "a c d", func(c *cluster) { c.slice("web-1", endpoint("a", ready)) }, 0},
		{"and the second slice is sent again", "a c d", func(c *cluster) { c.slice("web-2", endpoint("c", ready), endpoint("d", ready)) }, 0},
	}},
	{twoSlices, []step{
		{"the first of two slices is deleted", "c d", func(c *cluster) { c.remove("web-1") }, 0},
		{"the same, 10 s later", "c d", nil, 10 * time.Second},
	}},
	{func(c *cluster) { c.slice("web-1", endpoint("a", ready), endpoint("b", ready)) }, []step{
		{"a terminates, b is in the same slice", "b", func(c *cluster) { c.slice("web-1", endpoint("a", terminating), endpoint("b", ready)) }, 0},
		{"and b terminates, too: both serve", "none", func(c *cluster) { c.slice("web-1", endpoint("a", terminating), endpoint("b", terminating)) }, 0},
	}},
	{func(c *cluster) {
		c.slice("web-1", endpoint("a", ready))
		c.slice("web-2", endpoint("b", ready))
	}, []step{
		{"a terminates, b is in another slice", "b", func(c *cluster) { c.slice("web-1", endpoint("a", terminating)) }, 0},
	}},
	{func(c *cluster) {
		c.slice("web-1", endpoint("a", ready))
		c.slice("web-2", endpoint("b", ready))
	}, []step{
		{"b terminates, a is in another slice", "a", func(c *cluster) { c.slice("web-2", endpoint("b", terminating)) }, 0},
	}},
	{func(c *cluster) { c.slice("web-1", endpoint("a", ready), endpoint("b", unknown)) }, []step{
		{"a is ready, b has `ready: null`", "a b", nil, 0},
	}},
}
