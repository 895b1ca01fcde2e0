package pickfirst_test

import (
	"flag"
	"os"
	"testing"
)

func TestMain(m *testing.M) {
	flag.Set("rapid.checks", "1000")
	os.Exit(m.Run())
}
