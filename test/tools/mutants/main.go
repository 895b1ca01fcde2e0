// Command mutants does mutation testing. It changes one small place of the code at a time, and runs
// the tests that should then fail. If none does, the mutant has survived.
//
//	go run ./mutants [-n 100] [-seed 1] [-own] [-match TEXT] PACKAGE...     from the directory tools
//
// A PACKAGE is a directory of the root module. Its mutants are drawn at random from everything that
// could be changed. We run the tests of the package first, and if the mutant survives those, the
// tests of the packages in furtherTests. No source file is modified, since go test's -overlay flag
// lets us replace files. Mutants that don't compile don't count.
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

// furtherTests lists tests of other packages that run for a package's mutants too, fastest first.
var furtherTests = map[string][]string{
	"internal/core/priority":           {"./policy/priority", "./internal/testing/prioritymodel"},
	"internal/core/weightedtarget":     {"./policy/weightedtarget", "./internal/channel/topology"},
	"internal/core/weightedroundrobin": {"./policy/weightedroundrobin"},
	"internal/core/outlierdetection":   {"./policy/outlierdetection"},
	"internal/core/pickfirst":          {"./policy/pickfirst"},
	"internal/core/join":               {"./internal/channel/join", "./discovery/..."},
	"internal/core/ads":                {"./internal/envoy/adsclient", "./discovery/eds"},
	"internal/core/share":              {"./internal/testing/overload"},
	"internal/core/names":              {"./discovery/srv", "./internal/envoy/cds"},
	"internal/core/clusters":           {"./internal/envoy/cds"},
	"internal/core/edf":                {"./internal/lb/edf", "./internal/lb/weighted", "./policy/weightedroundrobin"},
	"internal/lb/shell":                {"./policy/priority", "./policy/weightedtarget", "./policy/outlierdetection", "./policy/weightedroundrobin", "./policy/pickfirst", "./policy/drop", "./internal/page", "./internal/channel"},
	"policy/drop":                      {"./internal/channel"},
	"policy/outlierdetection":          {"./internal/channel"},
	"policy/pickfirst":                 {"./policy/outlierdetection", "./internal/channel"},
	"policy/priority":                  {"./internal/channel"},
	"policy/weightedroundrobin":        {"./internal/channel"},
	"policy/weightedtarget":            {"./internal/channel"},
	"internal/channel/topology":        {"./discovery/..."},
	"internal/channel/join":            {"./discovery/..."},
	"internal/envoy/cds":               {"./internal/envoy/clusterfile", "./discovery/eds", "./discovery/file"},
	"internal/envoy/messages":          {"./internal/envoy/cds", "./internal/envoy/clusterfile", "./discovery/eds", "./discovery/file"},
	"internal/envoy/clusterfile":       {"./discovery/file"},
	"internal/lb/edf":                  {"./internal/lb/weighted", "./policy/weightedroundrobin", "./policy/weightedtarget"},
	"internal/lb/inorder":              {"./policy/weightedtarget", "./policy/weightedroundrobin", "./internal/channel/topology"},
	"internal/config/lbconfig":         {"./policy/priority", "./policy/weightedtarget", "./policy/outlierdetection", "./policy/weightedroundrobin", "./policy/pickfirst", "./policy/drop"},
}

func main() {
	n := flag.Int("n", 100, "how many mutants of each package to try")
	seed := flag.Uint64("seed", 1, "draws the mutants")
	own := flag.Bool("own", false, "run only the tests of the package, which is quicker")
	match := flag.String("match", "", "try only mutants whose name contains this text")
	flag.Parse()
	known, err := equivalent("mutants/equivalent.txt")
	if err == nil && flag.NArg() == 0 {
		err = errors.New("no package given, want one such as internal/core/priority")
	}
	if *own {
		clear(furtherTests)
	}
	total := map[outcome]int{}
	for _, dir := range flag.Args() {
		if err == nil {
			err = testPackage(dir, *n, *match, rand.New(rand.NewPCG(*seed, 0)), known, total)
		}
	}
	if tried := total[killed] + total[hung] + total[survived]; err == nil && total[survived]*50 > tried {
		err = fmt.Errorf("%d of %d changes survived, want at most 2 in 100", total[survived], tried)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

// equivalent reads the list of mutants that behave like the original. Each line has a name, " # "
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

type outcome string

const (
	uncompiled       outcome = "uncompiled"
	killed           outcome = "killed"
	hung             outcome = "hung"
	survived         outcome = "survived"
	equivalentMutant outcome = "equivalent"
)

func testPackage(dir string, n int, match string, random *rand.Rand, known map[string]bool, total map[outcome]int) error {
	all, err := mutantsOf(filepath.Join("../..", dir))
	if err != nil {
		return err
	}
	tests, err := suitesOf(append([]string{"./" + dir}, furtherTests[dir]...))
	if err != nil {
		return err
	}
	random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	places := len(all)
	all = slices.DeleteFunc(all, func(m *mutant) bool { return !strings.Contains(m.String(), match) })
	count := map[outcome]int{}
	remaining := func() int { return n - count[killed] - count[hung] - count[survived] - count[equivalentMutant] }
	for remaining() > 0 && len(all) > 0 {
		batch := min(len(all), remaining()*4/3+1) // about a quarter of the mutants does not compile
		if err := testBatch(dir, all[:batch], tests, known, count, remaining); err != nil {
			return err
		}
		all = all[batch:]
	}
	fmt.Printf("%s: %d places, %d killed, %d hung, %d survived, %d equivalent\n",
		dir, places, count[killed], count[hung], count[survived], count[equivalentMutant])
	for end, n := range count {
		total[end] += n
	}
	return nil
}

// We go on until remaining returns 0.
func testBatch(directory string, mutants []*mutant, tests []*suite, known map[string]bool, count map[outcome]int, remaining func() int) (err error) {
	scratch, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	dir := filepath.Join("../..", directory)
	woven, err := weave(dir, scratch, mutants)
	if err != nil {
		return err
	}
	for _, m := range mutants {
		if remaining() == 0 {
			break
		}
		name, end := directory+"/"+m.String(), uncompiled
		switch {
		case known[name]:
			end = equivalentMutant
		case m.uncompiled:
		case m.function == nil:
			end, err = m.testAlone(tests)
		default:
			end, err = testWoven(tests, woven, m.number)
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

func (m *mutant) testAlone(tests []*suite) (end outcome, err error) {
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
		return uncompiled, nil //nolint:nilerr // the mutant does not compile
	}
	return testWoven(tests, p, 0)
}

// The first suite that fails for the mutant is enough.
func testWoven(tests []*suite, p *program, number int) (outcome, error) {
	for i, s := range tests {
		if end, err := s.run(p, number); err != nil || end != survived {
			return end, err
		}
		if i == 0 && s.failsUnmutated {
			return "", errors.New("the package's own tests fail without a mutant")
		}
	}
	return survived, nil
}
