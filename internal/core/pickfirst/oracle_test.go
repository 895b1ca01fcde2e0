package pickfirst_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	core "github.com/understudy-lb/understudy/internal/core/pickfirst"
)

// The oracle knows no phases: it reads the whole history again after each event, and
// says what A62 says about it.
func TestOracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := newNetwork(rapid.Bool().Draw(t, "health"))
		n.apply(event{op: "update", list: []string{"a", "b", "c", "d"}[:rapid.IntRange(1, 4).Draw(t, "n")]})
		length := rapid.IntRange(1, 100).Draw(t, "length")
		for _, e := range rapid.SliceOfN(rapid.Custom(drawEvent), length, length).Draw(t, "schedule") {
			before := n.published()
			lines := n.apply(e)
			if err := judge(n, before, lines); err != nil {
				t.Fatalf("%v; after:\n%s", err, strings.Join(n.history, "\n"))
			}
		}
		if len(n.names) > 0 {
			if err := recovers(n, rapid.SampledFrom(n.names).Draw(t, "good")); err != nil {
				t.Fatalf("%v; after:\n%s", err, strings.Join(n.history, "\n"))
			}
		}
	})
}

func judge(n *network, before string, lines []string) error {
	if lines == nil {
		return nil
	}
	for _, rule := range []func(*network, string, []string) error{
		sticky, idleWaits, sameListChangesNothing, keepsConnection, oneConnection, retriesForEver, resolvesOnce, neverStuck, backsOff,
	} {
		if err := rule(n, before, lines); err != nil {
			return err
		}
	}
	return nil
}

// sticky: from a failed pass, which "resolve" follows, until READY (or IDLE after a
// connection), TRANSIENT_FAILURE.
func sticky(n *network, _ string, _ []string) error {
	failed := false
	for _, line := range n.history {
		switch {
		case line == "resolve":
			failed = true
		case strings.HasPrefix(line, "publish READY"), line == "publish IDLE":
			failed = false
		case line == "publish CONNECTING" && failed:
			return fmt.Errorf("left TRANSIENT_FAILURE for CONNECTING")
		}
	}
	return nil
}

// idleWaits: while IDLE, nothing but a request connects.
func idleWaits(_ *network, before string, lines []string) error {
	if before != "IDLE" || lines[0] == "exit-idle" {
		return nil
	}
	for _, line := range lines[1:] {
		if strings.HasPrefix(line, "connect") {
			return fmt.Errorf("idle, but %s", line)
		}
	}
	return nil
}

// sameListChangesNothing: unless it is empty.
func sameListChangesNothing(n *network, _ string, lines []string) error {
	list := lines[0]
	if !strings.HasPrefix(list, "update") || len(n.names) == 0 || len(lines) == 1 {
		return nil
	}
	earlier := n.history[:len(n.history)-len(lines)]
	for _, line := range slices.Backward(earlier) {
		if line == list {
			return fmt.Errorf("the same list again, but %v", lines[1:])
		}
		if strings.HasPrefix(line, "update") {
			break
		}
	}
	return nil
}

// keepsConnection: a list that holds the connected address changes nothing.
func keepsConnection(_ *network, before string, lines []string) error {
	connected, ready := strings.CutPrefix(before, "READY ")
	list, updated := strings.CutPrefix(lines[0], "update ")
	if ready && updated && slices.Contains(strings.Fields(list), connected) && len(lines) > 1 {
		return fmt.Errorf("connected to %s, which the list keeps, but %v", connected, lines[1:])
	}
	return nil
}

// oneConnection: a subchannel that is READY is the only one, and only such a one is
// published.
func oneConnection(n *network, _ string, _ []string) error {
	for address, s := range n.states {
		if s == core.Ready && len(n.made) != 1 {
			return fmt.Errorf("%s is connected, but there are %d subchannels", address, len(n.made))
		}
	}
	if address, ready := strings.CutPrefix(n.published(), "READY "); ready && n.states[address] != core.Ready {
		return fmt.Errorf("%s is published, but is %v", address, n.states[address])
	}
	return nil
}

// retriesForEver: once a pass has failed, whoever's backoff has ended is asked to
// connect, except for those whose turn in a new list's pass is still to come.
func retriesForEver(n *network, _ string, _ []string) error {
	last := slices.Index(n.history, "resolve")
	for i, line := range n.history {
		if line == "resolve" {
			last = i
		} else if strings.HasPrefix(line, "update") || line == "publish IDLE" || strings.HasSuffix(line, " READY") {
			last = -1
		}
	}
	if last < 0 {
		return nil
	}
	for _, address := range n.names {
		s := n.states[address]
		if _, rests := n.rests[address]; (s == core.Idle || s == core.None) && !n.asked[address] && !rests {
			return fmt.Errorf("%s is not retried", address)
		}
	}
	return nil
}

// resolvesOnce: when a connection broke, and after a failed pass once for as many failures
// as addresses.
func resolvesOnce(n *network, _ string, _ []string) error {
	size, failures, counting := 0, 0, false
	for i, line := range n.history {
		broke := i+1 < len(n.history) && n.history[i+1] == "publish IDLE"
		switch {
		case broke && line != "resolve":
			return fmt.Errorf("a connection broke, and re-resolution is not asked for")
		case broke:
			counting = false
		case strings.HasPrefix(line, "update"):
			size, counting = len(strings.Fields(line))-1, false
		case line == "publish IDLE", strings.HasSuffix(line, " READY"):
			counting = false
		case strings.HasPrefix(line, "report") && strings.HasSuffix(line, "TRANSIENT_FAILURE"):
			failures++
		case line == "resolve" && counting && failures != size:
			return fmt.Errorf("asked for re-resolution after %d failures of %d addresses", failures, size)
		case line == "resolve":
			counting, failures = true, 0
		}
	}
	if counting && failures >= size {
		return fmt.Errorf("%d failures of %d addresses, and re-resolution is not asked for", failures, size)
	}
	return nil
}

// neverStuck: while it is neither idle nor connected, something is under way.
func neverStuck(n *network, _ string, _ []string) error {
	if n.published() == "IDLE" || len(n.names) == 0 || n.timer != 0 {
		return nil
	}
	for _, address := range n.names {
		_, rests := n.rests[address]
		if s := n.states[address]; rests || n.asked[address] || s == core.Connecting || s == core.TransientFailure || s == core.Ready {
			return nil
		}
	}
	return fmt.Errorf("nothing is under way")
}

// backsOff: an address of which two connections in a row, or more, ended within a second is
// not connected to again for as long as gRPC's shortest backoff.
func backsOff(n *network, _ string, lines []string) error {
	for address, at := range n.ended {
		if slices.Contains(lines, "connect "+address) && n.now < at+800*time.Millisecond {
			return fmt.Errorf("%s is tried again %v after its connections ended soon", address, n.now-at)
		}
	}
	return nil
}

// recovers: when one address begins to work while all others fail, it is READY before
// long, whatever went before.
func recovers(n *network, good string) error {
	n.health = false
	for range 20 {
		n.apply(event{op: "exit-idle"})
		n.apply(event{op: "advance", wait: 3 * time.Minute})
		for _, address := range slices.Clone(n.names) {
			outcome := core.TransientFailure
			if address == good {
				outcome = core.Ready
			}
			if n.states[address] != core.Ready {
				n.apply(event{op: "network", address: address, outcome: outcome})
			}
			n.apply(event{op: "health", address: address, outcome: core.Ready})
		}
		if strings.HasPrefix(n.published(), "READY ") {
			return nil
		}
	}
	return fmt.Errorf("%s works, but is not READY", good)
}
