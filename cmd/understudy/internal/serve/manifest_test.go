package serve

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestManifestUsesValidFlags(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "examples", "kubernetes", "serve.yaml"))
	must(t, err)
	var args []string
	for line := range strings.Lines(string(text)) {
		if arg, ok := strings.CutPrefix(strings.TrimSpace(line), "- --"); ok {
			args = append(args, "--"+arg)
		}
	}
	command := Command()
	if err := command.ParseFlags(args); err != nil || len(args) < 8 {
		t.Fatalf("of %q: %v", args, err)
	}
	from, err := command.Flags().GetStringArray("from")
	if err != nil || len(from) != 1 {
		t.Fatalf("--from is %q, %v", from, err)
	}
	if name, target, err := splitFrom(from[0]); name != "checkout" || target != "kubernetes:///checkout.shop:grpc" || err != nil {
		t.Errorf("--from is %s, %s, %v", name, target, err)
	}
}
