package rehearse

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

var record = flag.Bool("record", false, "write testdata/figures.txt")

const figuresFile = "testdata/figures.txt"

func fleet(rate float64, events ...Event) World {
	s := Server{Workers: 5, Service: 50 * time.Millisecond}
	return World{
		Priorities: [][]Server{{s, s}, {s, s}, {s, s}}, Clients: 30, Rate: rate, Deadlines: []time.Duration{time.Second}, Length: 2 * time.Minute, Events: events,
		Policy: Recommended(),
	}
}

func minute(p int, f Fault, factor float64) Event {
	return Event{From: 20 * time.Second, To: 80 * time.Second, Priority: p, Server: All, Fault: f, Factor: factor}
}

// figuredWorlds are worlds in which each core decides something.
func figuredWorlds() (names []string, worlds []World) {
	add := func(name string, w World) { names, worlds = append(names, name), append(worlds, w) }
	add("nothing wrong", fleet(150))
	add("1.5 times the load", fleet(300))
	add("more than all can carry", fleet(750))
	for _, fault := range []struct {
		name  string
		event Event
	}{
		{"killed", minute(0, Killed, 0)},
		{"drained", minute(0, Drained, 0)},
		{"hangs", minute(0, Hangs, 0)},
		{"unreachable", minute(0, Unreachable, 0)},
		{"errors", minute(0, Errors, 0)},
		{"half the errors", minute(0, Errors, 0.5)},
		{"UNAVAILABLE", minute(0, Unavailable, 0)},
		{"slower by 4", minute(0, Slow, 4)},
		{"a fifth of the workers", minute(0, Fewer, 0.2)},
	} {
		add(fault.name, fleet(150, fault.event))
	}
	one := minute(0, Errors, 0)
	one.Server = 1
	add("one endpoint returns errors", fleet(150, one))
	atStart := minute(0, Unreachable, 0)
	atStart.From = 0
	add("unreachable from the start", fleet(150, atStart))
	add("two priorities killed", fleet(150, minute(0, Killed, 0), minute(1, Killed, 0)))
	slow := fleet(30, Event{To: 20 * time.Second, Server: All, Fault: Errors})
	slow.Priorities[0] = []Server{{Workers: 40, Service: 600 * time.Millisecond}}
	add("slow by nature, with errors at first", slow)
	retries := fleet(150, minute(0, Unavailable, 0))
	retries.Tokens = 100
	add("UNAVAILABLE, with retries", retries)
	a56 := fleet(150, minute(0, Killed, 0))
	a56.Policy.Overflow, a56.Policy.WarmStandby = false, 0
	add("killed, without overflow and standbys", a56)
	add("restart, first source silent", restarted(minute(0, SourceSilent, 0)))
	add("restart, a source fails, one is silent", restarted(minute(0, SourceFails, 0), minute(1, SourceSilent, 0)))
	add("restart, all sources silent", restarted(minute(0, SourceSilent, 0), minute(1, SourceSilent, 0), minute(2, SourceSilent, 0)))
	return names, worlds
}

// restarted has a source for each priority.
func restarted(events ...Event) World {
	w := fleet(150, events...)
	w.Restart, w.Entries = 20*time.Second, []string{"a", "b", "c"}
	return w
}

func figures() string {
	var b strings.Builder
	names, worlds := figuredWorlds()
	for i, w := range worlds {
		o := Play(context.Background(), w, 1)
		fmt.Fprintf(&b, "%-40s calls %d lost %d refused %d moves %d attempts %d gap %v normal %v peak %.2f answered %v\n",
			names[i], o.Calls, o.Lost, o.Refused, o.Moves, o.Attempts, o.Longest.Round(time.Millisecond), o.Normal, o.Peak, o.sum(0, len(o.Seconds)).Answered)
	}
	return b.String()
}

// A change of a core changes these figures: record them with -record, and look at the difference.
func TestFigures(t *testing.T) {
	got := figures()
	if *record {
		if err := os.WriteFile(figuresFile, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(figuresFile)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("the figures have changed; got\n%swant\n%s", got, want)
	}
}
