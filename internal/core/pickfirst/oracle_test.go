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
		runOracle(t, rapid.IntRange(1, 4).Draw(t, "n"), rapid.Custom(drawEvent))
	})
}

// The connections of a single address rarely fail and often end.
func TestOracleWithShortConnections(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { runOracle(t, 1, rapid.Custom(drawShort)) })
}

func runOracle(t *rapid.T, addresses int, draw *rapid.Generator[event]) {
	n := newNetwork(rapid.Bool().Draw(t, "health"))
	n.apply(event{op: "update", list: []string{"a", "b", "c", "d"}[:addresses]})
	length := rapid.IntRange(1, 100).Draw(t, "length")
	for _, e := range rapid.SliceOfN(draw, length, length).Draw(t, "schedule") {
		before := n.published()
		lines := n.apply(e)
		if err := checkRules(n, before, lines); err != nil {
			t.Fatalf("%v; after:\n%s", err, strings.Join(n.history, "\n"))
		}
	}
	if len(n.names) > 0 {
		if err := checkRecovery(n, rapid.SampledFrom(n.names).Draw(t, "good")); err != nil {
			t.Fatalf("%v; after:\n%s", err, strings.Join(n.history, "\n"))
		}
	}
}

func checkRules(n *network, before string, lines []string) error {
	if lines == nil {
		return nil
	}
	for _, rule := range []func(*network, string, []string) error{
		checkSticky, checkIdle, checkSameList, checkConnectionKept, checkOneConnection, checkRetries, checkResolutions, checkProgress, checkBackoff,
	} {
		if err := rule(n, before, lines); err != nil {
			return err
		}
	}
	return nil
}

// checkSticky checks that the state stays TRANSIENT_FAILURE after a pass in which all addresses
// failed ("resolve" in the history). Only READY, or IDLE after the end of a connection, may follow.
func checkSticky(n *network, _ string, _ []string) error {
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

func checkIdle(_ *network, before string, lines []string) error {
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

func checkSameList(n *network, _ string, lines []string) error {
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

func checkConnectionKept(_ *network, before string, lines []string) error {
	connected, ready := strings.CutPrefix(before, "READY ")
	list, updated := strings.CutPrefix(lines[0], "update ")
	if ready && updated && slices.Contains(strings.Fields(list), connected) && len(lines) > 1 {
		return fmt.Errorf("the list keeps the connected address %s, but caused %v", connected, lines[1:])
	}
	return nil
}

// checkOneConnection checks that a READY subchannel is the only subchannel, and that READY is
// published only while a READY subchannel exists.
func checkOneConnection(n *network, _ string, _ []string) error {
	for address, s := range n.states {
		if s == core.Ready && len(n.subchannels) != 1 {
			return fmt.Errorf("%s is connected, but there are %d subchannels", address, len(n.subchannels))
		}
	}
	if address, ready := strings.CutPrefix(n.published(), "READY "); ready && n.states[address] != core.Ready {
		return fmt.Errorf("%s is published, but is %v", address, n.states[address])
	}
	return nil
}

// checkRetries checks that each address is retried when its backoff ends, after a pass in which all
// addresses failed. The rule does not apply after a change of the list.
func checkRetries(n *network, _ string, _ []string) error {
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
		if _, inBackoff := n.backoffEnds[address]; (s == core.Idle || s == core.None) && !n.connectRequested[address] && !inBackoff {
			return fmt.Errorf("%s is not retried", address)
		}
	}
	return nil
}

// checkResolutions checks that one re-resolution is requested when a connection is lost, when all
// addresses have failed in a pass, and for each later round of failures.
func checkResolutions(n *network, _ string, _ []string) error {
	size, failures, counting := 0, 0, false
	for i, line := range n.history {
		connectionLost := i+1 < len(n.history) && n.history[i+1] == "publish IDLE"
		switch {
		case connectionLost && line != "resolve":
			return fmt.Errorf("a connection broke without a re-resolution")
		case connectionLost:
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

// checkProgress checks that the policy is IDLE or connected, or waits for an event that will occur.
func checkProgress(n *network, _ string, _ []string) error {
	if n.published() == "IDLE" || len(n.names) == 0 || n.timer != 0 {
		return nil
	}
	for _, address := range n.names {
		_, rests := n.backoffEnds[address]
		if s := n.states[address]; rests || n.connectRequested[address] || s == core.Connecting || s == core.TransientFailure || s == core.Ready {
			return nil
		}
	}
	return fmt.Errorf("no event is pending")
}

// checkBackoff checks that an address waits for a backoff after two or more short-lived connections
// in a row, and only then.
func checkBackoff(n *network, _ string, lines []string) error {
	for address := range n.backoffEnds {
		if l := n.links[address]; lines[0] == "report "+address+" IDLE" && l.current.answered {
			return fmt.Errorf("%s is in backoff after a connection that has received a response", address)
		}
	}
	return n.broken
}

// checkRecovery checks that the policy becomes READY if one address works, even if all other
// addresses fail.
func checkRecovery(n *network, working string) error {
	n.health = false
	for range 20 {
		n.apply(event{op: "exit-idle"})
		n.apply(event{op: "advance", wait: 3 * time.Minute})
		for _, address := range slices.Clone(n.names) {
			outcome := core.TransientFailure
			if address == working {
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
	return fmt.Errorf("%s works, but is not READY", working)
}
