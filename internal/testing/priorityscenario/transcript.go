package priorityscenario

import (
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/cockroachdb/datadriven"
)

type Event struct{ Line, Input string }

// A56Events returns random events. They only use what's in A56, so our own options aren't set, and
// children report nothing that gRPC's connectivity states can't express. The golden files depend on
// every single random number, so any change here makes them worthless.
func A56Events(seed uint64) []Event {
	r := rand.New(rand.NewPCG(seed, 56))
	draw := a56{r: r, order: []string{"a", "b", "c", "d", "e"}}
	events := []Event{{Line: draw.update(), Input: draw.input()}}
	for n := 30 + r.IntN(50); len(events) < n; {
		events = append(events, draw.event())
	}
	return append(events, Event{Line: "close"})
}

type a56 struct {
	r     *rand.Rand
	order []string
}

func (d *a56) event() Event {
	switch n := d.r.IntN(100); {
	case n < 55:
		return Event{"report " + d.child() + " " + d.state(), d.input()}
	case n < 80:
		longest := []int{2_000, 6_000, 12_000, 70_000, 900_000, 1_000_000}[d.r.IntN(6)]
		return Event{fmt.Sprintf("advance %dms", 1+d.r.IntN(longest)), d.input()}
	case n < 93:
		return Event{d.update(), d.input()}
	case n < 95:
		return Event{Line: "exit-idle"}
	case n < 97:
		return Event{Line: "resolver-error no-such-host"}
	}
	return Event{Line: "re-resolve " + d.child()}
}

func (d *a56) update() string {
	if d.r.IntN(5) == 0 {
		d.r.Shuffle(len(d.order), func(i, j int) { d.order[i], d.order[j] = d.order[j], d.order[i] })
	}
	n := []int{3, 3, 3, 3, 2, 2, 1, 0, 4, 5}[d.r.IntN(10)]
	words := append([]string{"update"}, d.order[:n]...)
	if more := n + d.r.IntN(len(d.order)-n+1); more > n {
		words = append(words, "children=("+strings.Join(d.order[:more], ",")+")")
	}
	words = append(words, []string{"", "", "timeout=3s"}[d.r.IntN(3)])
	words = append(words, []string{"", "", "", "retention=1m", "retention=0s"}[d.r.IntN(5)])
	words = append(words, []string{"", "", "", "removed=1m", "removed=0s"}[d.r.IntN(5)])
	words = append(words, []string{"", "", "", "ignore=(a,c)"}[d.r.IntN(4)])
	return strings.Join(strings.Fields(strings.Join(words, " ")), " ")
}

func (d *a56) input() string {
	var lines []string
	for i := range d.r.IntN(3) {
		lines = append(lines, fmt.Sprintf("10.0.0.%d:80 %s", i, []string{"a", "b x", "c", "z"}[d.r.IntN(4)]))
	}
	for range []int{0, 0, 0, 1, 2}[d.r.IntN(5)] {
		if d.r.IntN(4) == 0 {
			lines = append(lines, d.child()+": error bad")
		} else {
			lines = append(lines, d.child()+": report "+d.state())
		}
	}
	return strings.Join(lines, "\n")
}

func (d *a56) child() string { return string("aaabbbccde"[d.r.IntN(10)]) }

func (d *a56) state() string {
	state := []string{"IDLE", "CONNECTING", "CONNECTING", "READY", "READY", "TRANSIENT_FAILURE", "TRANSIENT_FAILURE", "TRANSIENT_FAILURE"}[d.r.IntN(8)]
	return strings.TrimSpace(state + " " + []string{"", "x", "y"}[d.r.IntN(3)])
}

// Transcribe applies the events and returns a transcript of each one: the event as scenarios write
// it, and what the target did.
func Transcribe(target Target, events []Event, after func() []string) ([]string, error) {
	var transcripts []string
	for _, e := range events {
		cmd, args, err := datadriven.ParseLine(e.Line)
		if err != nil {
			return nil, err
		}
		if err := drive(target, &datadriven.TestData{Cmd: cmd, CmdArgs: args, Input: e.Input}); err != nil {
			return nil, fmt.Errorf("%s: %w", e.Line, err)
		}
		lines := target.Take()
		SortSimultaneous(lines)
		if len(lines) == 0 {
			lines = []string{"nothing"}
		}
		if after != nil {
			lines = append(lines, after()...)
		}
		text := e.Line + "\n"
		if e.Input != "" {
			text += e.Input + "\n"
		}
		transcripts = append(transcripts, text+"----\n"+strings.Join(lines, "\n")+"\n")
	}
	return transcripts, nil
}

// Digests returns two hexadecimal digits per transcript, taken from the hash of all transcripts so
// far. The digests of two runs first differ where the transcripts do. There's just a chance of one
// in 256 that it takes another transcript to show.
func Digests(transcripts []string) string {
	hash, digests := sha256.New(), ""
	for _, t := range transcripts {
		hash.Write([]byte(t))
		digests += fmt.Sprintf("%02x", hash.Sum(nil)[0])
	}
	return digests
}
