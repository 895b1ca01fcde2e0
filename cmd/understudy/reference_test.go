package main

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

const referencePage = "../../docs/reference/commands.md"

var writeReference = flag.Bool("reference", false, "write "+referencePage)

func TestCommandReferenceIsCurrent(t *testing.T) {
	want := reference()
	if *writeReference {
		if err := os.WriteFile(referencePage, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(referencePage)
	if err != nil || string(got) != want {
		t.Errorf("docs/reference/commands.md is out of date (%v): run make reference", err)
	}
}

func reference() string {
	root := newCommand()
	var b strings.Builder
	b.WriteString("# Commands\n\n`make reference` writes this page from the help texts of the command.\n\n")
	for _, c := range root.Commands() {
		if c.IsAvailableCommand() {
			fmt.Fprintf(&b, "- [`understudy %s`](#understudy-%[1]s): %s\n", c.Name(), c.Short)
		}
	}
	b.WriteString(`
## Exit codes

| code | meaning |
| --- | --- |
| 0 | success |
| 1 | a failure that neither the arguments nor the input caused |
| 2 | the arguments, a file or a target are invalid |
| 3 | no endpoint can take calls (` + "`explain`, `watch`" + `) |
`)
	for _, c := range root.Commands() {
		if c.IsAvailableCommand() {
			describeCommand(&b, c)
		}
	}
	return b.String()
}

func describeCommand(b *strings.Builder, c *cobra.Command) {
	text := c.Long
	if text == "" {
		text = c.Short + "."
	}
	fmt.Fprintf(b, "\n## `%s`\n\n```\n%s\n```\n", c.CommandPath(), strings.TrimSpace(text))
	if c.Example != "" {
		fmt.Fprintf(b, "\nExamples:\n\n```\n%s\n```\n", c.Example)
	}
	if c.Flags().HasAvailableFlags() {
		b.WriteString("\n| flag | value | default | |\n| --- | --- | --- | --- |\n")
	}
	c.Flags().VisitAll(func(f *pflag.Flag) {
		name := "--" + f.Name
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		value, usage := pflag.UnquoteUsage(f)
		defaultValue := f.DefValue
		if defaultValue == "[]" || defaultValue == "false" {
			defaultValue = ""
		}
		if defaultValue != "" {
			defaultValue = "`" + defaultValue + "`"
		}
		fmt.Fprintf(b, "| `%s` | %s | %s | %s |\n", name, value, defaultValue, strings.ReplaceAll(usage, "|", `\|`))
	})
}
