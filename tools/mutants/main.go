// Command mutants changes one small place of the code at a time and runs the tests that should
// notice. If no test fails, the mutant has survived.
//
//	go run ./mutants [-n 100] [-seed 1] [-own] [-match TEXT] ROOM...     from the directory tools
//
// A ROOM is a directory of the root module. Its mutants are drawn at random from all places that
// can be changed. A room's own tests run first, and those of the packages in noticing only if the
// mutant has survived so far. The changed files replace the originals through go test's -overlay
// flag, so no source file is modified. A mutant that does not compile does not count.
package main

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// noticing lists further packages whose tests run for a room, the fastest first.
var noticing = map[string][]string{
	"internal/core/priority":           {"./priority", "./internal/testing/prioritymodel"},
	"internal/core/weightedtarget":     {"./weightedtarget", "./internal/topology"},
	"internal/core/weightedroundrobin": {"./weightedroundrobin"},
	"internal/core/outlierdetection":   {"./outlierdetection"},
	"internal/core/pickfirst":          {"./pickfirst"},
	"internal/core/join":               {"./internal/join", "./discovery/..."},
	"internal/core/ads":                {"./internal/adsclient", "./discovery/eds"},
	"internal/core/names":              {"./discovery/srv", "./internal/cds"},
	"internal/core/clusters":           {"./internal/cds"},
	"internal/core/edf":                {"./internal/edf", "./internal/weighted", "./weightedroundrobin"},
	"internal/shell":                   {"./priority", "./weightedtarget", "./outlierdetection", "./weightedroundrobin", "./pickfirst", "./drop", "./internal/debugpage", "."},
	"drop":                             {"."},
	"outlierdetection":                 {"."},
	"pickfirst":                        {"."},
	"priority":                         {"."},
	"weightedroundrobin":               {"."},
	"weightedtarget":                   {"."},
	"internal/topology":                {"./discovery/..."},
	"internal/join":                    {"./discovery/..."},
	"internal/envoy":                   {"./discovery/eds", "./discovery/file"},
	"internal/clusterfile":             {"./discovery/file"},
	"internal/edf":                     {"./internal/weighted", "./weightedroundrobin", "./weightedtarget"},
	"internal/inorder":                 {"./weightedtarget", "./weightedroundrobin", "./internal/topology"},
	"internal/lastgood":                {"./internal/join"},
	"internal/lbconfig":                {"./priority", "./weightedtarget", "./outlierdetection", "./weightedroundrobin", "./pickfirst", "./drop"},
	"internal/resolving":               {"./internal/join", "./discovery/..."},
}

func main() {
	n := flag.Int("n", 100, "how many mutants of each room to try")
	seed := flag.Uint64("seed", 1, "draws the mutants")
	own := flag.Bool("own", false, "run only the tests of the room, which is quicker")
	match := flag.String("match", "", "try only mutants whose name contains this text")
	flag.Parse()
	known, err := equivalent("mutants/equivalent.txt")
	if err == nil && flag.NArg() == 0 {
		err = errors.New("no room given, want one such as internal/core/priority")
	}
	if *own {
		clear(noticing)
	}
	for _, room := range flag.Args() {
		if err == nil {
			err = try(room, *n, *match, rand.New(rand.NewPCG(*seed, 0)), known)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

// equivalent reads the names of mutants that behave like the original. Each line has a name, " # "
// and the reason.
func equivalent(file string) (map[string]bool, error) {
	text, err := os.ReadFile(file)
	known := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		name, _, _ := strings.Cut(line, " # ")
		known[name] = true
	}
	return known, err
}

// A fate is the result of a mutant.
type fate string

const (
	uncompiled fate = "uncompiled"
	killed     fate = "killed"
	hung       fate = "hung"
	survived   fate = "survived"
	same       fate = "equivalent"
)

// try tests mutants of a room and prints those that no test noticed.
func try(room string, n int, match string, random *rand.Rand, known map[string]bool) error {
	all, err := mutantsOf(filepath.Join("..", room))
	if err != nil {
		return err
	}
	tests, err := suitesOf(append([]string{"./" + room}, noticing[room]...))
	if err != nil {
		return err
	}
	random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	places := len(all)
	all = slices.DeleteFunc(all, func(m *mutant) bool { return !strings.Contains(m.String(), match) })
	count := map[fate]int{}
	left := func() int { return n - count[killed] - count[hung] - count[survived] - count[same] }
	for left() > 0 && len(all) > 0 {
		some := min(len(all), left()*4/3+1) // a quarter does not compile
		if err := tryThese(room, all[:some], tests, known, count, left); err != nil {
			return err
		}
		all = all[some:]
	}
	fmt.Printf("%s: %d places, %d killed, %d hung, %d survived, %d equivalent\n",
		room, places, count[killed], count[hung], count[survived], count[same])
	return nil
}

// tryThese counts the results of mutants until left returns 0.
func tryThese(room string, mutants []*mutant, tests []*suite, known map[string]bool, count map[fate]int, left func() int) (err error) {
	scratch, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	dir := filepath.Join("..", room)
	woven, err := weave(dir, scratch, mutants)
	if err != nil {
		return err
	}
	for _, m := range mutants {
		if left() == 0 {
			break
		}
		name, end := room+"/"+m.String(), uncompiled
		switch {
		case known[name]:
			end = same
		case m.uncompiled:
		case m.function == nil:
			end, err = m.runAlone(tests)
		default:
			end, err = runAll(tests, woven, m.number)
		}
		if err != nil {
			return err
		}
		if count[end]++; end == survived || end == hung {
			fmt.Printf("%s line %d: %s\n", end, m.line, name)
		}
	}
	return nil
}

// runAlone runs the tests of a program that has only this mutant.
func (m *mutant) runAlone(tests []*suite) (end fate, err error) {
	scratch, err := os.MkdirTemp("", "mutant")
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	p := &program{scratch: scratch, replace: map[string]string{}}
	if err := p.put(m.file, m.code); err != nil {
		return "", err
	}
	if _, err := p.test(tests[0]); err != nil {
		return uncompiled, nil //nolint:nilerr // the compiler's errors
	}
	return runAll(tests, p, 0)
}

// runAll runs the tests of each package until the mutant is noticed.
func runAll(tests []*suite, p *program, number int) (fate, error) {
	for i, s := range tests {
		if end, err := s.run(p, number); err != nil || end != survived {
			return end, err
		}
		if i == 0 && s.fails {
			return "", errors.New("the room's own tests fail without a mutant")
		}
	}
	return survived, nil
}
