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

// sticky checks that the state stays TRANSIENT_FAILURE after a pass in which all addresses failed
// ("resolve" in the history). It may only become READY, or IDLE after a connection has ended.
func sticky(n *network, _ string, _ []string) error {
	failed := false
	for _, line := range n.history {
		switch {
		case line == "resolve":
			failed = true
		case strings.HasPrefix(line, "publish READY"), line == "publish IDLE":
			failed = false
		case line == "publish CONNECTING" && failed:
			return fmt.Errorf("the state changed from TRANSIENT_FAILURE to CONNECTING")
		}
	}
	return nil
}

func idleWaits(_ *network, before string, lines []string) error {
	if before != "IDLE" || lines[0] == "exit-idle" {
		return nil
	}
	for _, line := range lines[1:] {
		if strings.HasPrefix(line, "connect") {
			return fmt.Errorf("the policy is idle, but %s", line)
		}
	}
	return nil
}

func sameListChangesNothing(n *network, _ string, lines []string) error {
	list := lines[0]
	if !strings.HasPrefix(list, "update") || len(n.names) == 0 || len(lines) == 1 {
		return nil
	}
	earlier := n.history[:len(n.history)-len(lines)]
	for _, line := range slices.Backward(earlier) {
		if line == list {
			return fmt.Errorf("the same list caused %v", lines[1:])
		}
		if strings.HasPrefix(line, "update") {
			break
		}
	}
	return nil
}

func keepsConnection(_ *network, before string, lines []string) error {
	connected, ready := strings.CutPrefix(before, "READY ")
	list, updated := strings.CutPrefix(lines[0], "update ")
	if ready && updated && slices.Contains(strings.Fields(list), connected) && len(lines) > 1 {
		return fmt.Errorf("the list keeps the connected address %s, but caused %v", connected, lines[1:])
	}
	return nil
}

// oneConnection checks that a READY subchannel is the only subchannel, and that READY is published
// only while there is one.
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

// retriesForEver checks that after a pass in which all addresses failed, each address is connected
// when its backoff ends or, if the list has changed, when its turn comes.
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

// resolvesOnce checks that there is one re-resolution when a connection is lost, one when all
// addresses have failed in a pass, and one for each later round of failures.
func resolvesOnce(n *network, _ string, _ []string) error {
	size, failures, counting := 0, 0, false
	for i, line := range n.history {
		broke := i+1 < len(n.history) && n.history[i+1] == "publish IDLE"
		switch {
		case broke && line != "resolve":
			return fmt.Errorf("a connection broke without a re-resolution")
		case broke:
			counting = false
		case strings.HasPrefix(line, "update"):
			size, counting = len(strings.Fields(line))-1, false
		case line == "publish IDLE", strings.HasSuffix(line, " READY"):
			counting = false
		case strings.HasPrefix(line, "report") && strings.HasSuffix(line, "TRANSIENT_FAILURE"):
			failures++
		case line == "resolve" && counting && failures != size:
			return fmt.Errorf("re-resolution after %d failures of %d addresses", failures, size)
		case line == "resolve":
			counting, failures = true, 0
		}
	}
	if counting && failures >= size {
		return fmt.Errorf("no re-resolution after %d failures of %d addresses", failures, size)
	}
	return nil
}

// neverStuck checks that the policy is IDLE or connected, or waits for an event that will come.
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
	return fmt.Errorf("no event is pending")
}

// backsOff checks that an address with two or more short connections in a row is connected again
// only after gRPC's shortest backoff.
func backsOff(n *network, _ string, lines []string) error {
	for address, at := range n.ended {
		if slices.Contains(lines, "connect "+address) && n.now < at+800*time.Millisecond {
			return fmt.Errorf("%s is connected again %v after its short-lived connections", address, n.now-at)
		}
	}
	return nil
}

// recovers checks that the policy is soon READY if one address works, whatever has happened before
// and even if all other addresses fail.
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
