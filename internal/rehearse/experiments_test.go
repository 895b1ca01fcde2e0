package rehearse

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

var draw = flag.Bool("draw", false, "draw the experiments of docs/experiments.md again")

// experiment has two priorities of ten endpoints, each of which answers 20 calls a second, and 50
// clients.
func experiment(rate float64, events ...Event) World {
	w := fleet(rate, events...)
	w.Clients, w.Length = 50, 3*time.Minute
	var servers []Server
	for range 10 {
		servers = append(servers, Server{Workers: 1, Service: 50 * time.Millisecond})
	}
	w.Priorities = [][]Server{servers, servers}
	return w
}

func fromSecond30(p int, f Fault) Event {
	return Event{From: 30 * time.Second, To: 90 * time.Second, Priority: p, Server: All, Fault: f}
}

func experiments() (files, titles []string, worlds []World) {
	add := func(file, title string, w World) {
		files, titles, worlds = append(files, file), append(titles, title), append(worlds, w)
	}
	steps := experiment(180)
	for i, load := range []float64{0.9, 1.1, 1.3, 1.5, 1.8, 2.1, 2.5} {
		from := time.Duration(i) * 25 * time.Second
		steps.Spikes = append(steps.Spikes, Spike{200 * load, Span{from, from + 25*time.Second}})
	}
	add("load", "0.9, 1.1, 1.3, 1.5, 1.8, 2.1 and 2.5 times what p0 can answer, 25 s each", steps)
	spike := experiment(150)
	spike.Spikes = []Spike{{380, Span{30 * time.Second, 50 * time.Second}}}
	add("spike", "2.5 times as many calls for 20 s", spike)
	cold := experiment(150, fromSecond30(0, Killed))
	for i := range cold.Priorities[1] {
		cold.Priorities[1] = append([]Server(nil), cold.Priorities[1]...)
		cold.Priorities[1][i].Cold = 20 * time.Second
	}
	add("cold", "p0 is killed for a minute, and p1 is four times slower at first", cold)
	retries := experiment(150, fromSecond30(0, Unavailable))
	retries.Tokens = 100
	add("retries", "p0 returns UNAVAILABLE for a minute, with retries", retries)
	add("return", "p0 hangs for a minute: the return of clients with 3 calls a second", experiment(150, fromSecond30(0, Hangs)))
	slow := experiment(150, fromSecond30(0, Hangs))
	slow.Clients = 500
	add("slow-return", "the same: the return of clients with one call each 3 s", slow)
	mixed := experiment(300)
	mixed.RoundRobin = 0.5
	add("mixed", "1.5 times what p0 can answer; half of the clients use round_robin over all endpoints", mixed)
	partition := fromSecond30(0, Unreachable)
	partition.Seen = 0.3
	add("partition", "p0 is unreachable for 30 % of the clients, for a minute", experiment(150, partition))
	subset := experiment(150, Event{From: 30 * time.Second, To: 90 * time.Second, Server: 0, Fault: Errors}, Event{From: 30 * time.Second, To: 90 * time.Second, Server: 1, Fault: Errors})
	subset.Subset = 3
	add("subset", "each client uses 3 of 10 endpoints; 2 return errors for a minute", subset)
	return files, titles, worlds
}

// The pictures of docs/experiments.md are what the model plays today: draw them with -draw, and look
// at them.
func TestExperiments(t *testing.T) {
	files, titles, worlds := experiments()
	for i, w := range worlds {
		o := Play(context.Background(), w, 1)
		t.Logf("%s: %d of %d calls lost, %d moves, peaks %.2f, normal after %v", files[i], o.Lost, o.Calls, o.Moves, o.Peak, o.Normal)
		file, picture := filepath.Join("..", "..", "docs", "experiments", files[i]+".svg"), o.Plot(titles[i], w)
		if *draw {
			if err := os.WriteFile(file, []byte(picture), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := os.ReadFile(file); err != nil || string(got) != picture {
			t.Errorf("%s is out of date (%v)", fmt.Sprintf("docs/experiments/%s.svg", files[i]), err)
		}
	}
}
