// Command mutants changes one small place of the code at a time and runs the tests that should
// notice. If no test fails, the mutant has survived.
//
//	go run ./mutants [-n 100] [-seed 1] ROOM...     from the directory tools
//
// A ROOM is a directory of the root module. Its mutants are drawn at random from all places that
// can be changed. The tests of a room are its own and those of the packages in noticing. The
// changed file replaces the original through go test's -overlay flag, so no source file is
// modified. A mutant that does not compile does not count.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"go/format"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// noticing lists more packages whose tests run for a room, the quickest first.
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
	"internal/core/edf":                {"./internal/edf", "./weightedroundrobin"},
	"internal/shell":                   {"./priority", "./weightedtarget", "./outlierdetection", "./weightedroundrobin", "./pickfirst", "./drop", "."},
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
}

// longest is the time limit for the tests of a mutant. A mutant that hangs counts as noticed.
const longest = 3 * time.Minute

func main() {
	n := flag.Int("n", 100, "how many mutants of each room to try")
	seed := flag.Uint64("seed", 1, "draws the mutants")
	flag.Parse()
	known, err := equivalent("mutants/equivalent.txt")
	if err == nil && flag.NArg() == 0 {
		err = errors.New("no room given, want one such as internal/core/priority")
	}
	for _, room := range flag.Args() {
		if err == nil {
			err = try(room, *n, rand.New(rand.NewPCG(*seed, 0)), known)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

// equivalent returns the content of a file of mutants that behave like the original. Each line
// begins with the name of one.
func equivalent(file string) (string, error) {
	text, err := os.ReadFile(file)
	return "\n" + string(text), err
}

// try tests mutants of a room and prints the survivors.
func try(room string, n int, random *rand.Rand, known string) error {
	all, err := mutantsOf(filepath.Join("..", room))
	if err != nil {
		return err
	}
	random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	killed, survived, same := 0, 0, 0
	for _, m := range all {
		if killed+survived+same == n {
			break
		}
		name := room + "/" + m.String()
		if strings.Contains(known, "\n"+name+" ") {
			same++
			continue
		}
		switch noticed, compiles, err := m.run(room); {
		case err != nil:
			return err
		case !compiles:
		case noticed:
			killed++
		default:
			survived++
			fmt.Println("survived", name)
		}
	}
	fmt.Printf("%s: %d places, %d killed, %d survived, %d equivalent\n", room, len(all), killed, survived, same)
	return nil
}

// run runs the tests of a room with the mutant.
func (m mutant) run(room string) (noticed, compiles bool, err error) {
	dir, err := os.MkdirTemp("", "mutant")
	if err != nil {
		return false, false, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	code, err := format.Source(m.code)
	if err != nil {
		return false, false, nil //nolint:nilerr // it does not compile
	}
	original, err := filepath.Abs(m.file)
	if err != nil {
		return false, false, err
	}
	mutated, overlay := filepath.Join(dir, "mutant.go"), filepath.Join(dir, "overlay.json")
	replace, err := json.Marshal(map[string]any{"Replace": map[string]string{original: mutated}})
	if err == nil {
		err = errors.Join(os.WriteFile(mutated, code, 0o600), os.WriteFile(overlay, replace, 0o600))
	}
	if err != nil {
		return false, false, err
	}
	if out, err := goIn("..", "build", "-overlay", overlay, "./"+room); err != nil {
		return false, false, nil //nolint:nilerr // the compiler's errors
	} else if strings.TrimSpace(out) != "" {
		return false, false, errors.New(out)
	}
	for _, tests := range slices.Concat([]string{"./" + room}, noticing[room]) {
		if _, err := goIn("..", "test", "-overlay", overlay, "-failfast", "-timeout", longest.String(), tests); err != nil {
			return true, true, nil //nolint:nilerr // a test noticed
		}
	}
	return false, true, nil
}

func goIn(dir string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*longest)
	defer cancel()
	command := exec.CommandContext(ctx, "go", args...)
	command.Dir = dir
	out, err := command.CombinedOutput()
	return string(out), err
}
