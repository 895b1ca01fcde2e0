package main

import (
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

const unknown = "(unknown)"

// build describes a build of the command, as the Go toolchain has recorded it in the binary.
type build struct {
	Version  string `json:"version"`            // a release, a pseudo-version, or (devel)
	Commit   string `json:"commit,omitempty"`   // empty unless built in a clone of the repository
	Modified *bool  `json:"modified,omitempty"` // whether files differed from the commit
	Go       string `json:"go"`
	Platform string `json:"platform"`
	GRPC     string `json:"grpc"`
}

func thisBuild() build {
	info, _ := debug.ReadBuildInfo()
	return buildOf(info)
}

// buildOf returns the build that info describes. info may be nil.
func buildOf(info *debug.BuildInfo) build {
	b := build{Version: unknown, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH, GRPC: unknown}
	if info == nil {
		return b
	}
	if info.Main.Version != "" {
		b.Version = info.Main.Version
	}
	for _, setting := range info.Settings {
		switch setting.Key {
		case "vcs.revision":
			b.Commit = setting.Value
		case "vcs.modified":
			modified := setting.Value == "true"
			b.Modified = &modified
		}
	}
	for _, module := range info.Deps {
		if module.Path == "google.golang.org/grpc" {
			if module.Replace != nil {
				module = module.Replace
			}
			b.GRPC = module.Version
		}
	}
	return b
}

func (b build) String() string {
	line := b.Version
	if b.Commit != "" {
		line += ", commit " + b.commit()
	}
	return fmt.Sprintf("%s, %s %s, grpc %s", line, b.Go, b.Platform, b.GRPC)
}

func (b build) commit() string {
	switch {
	case b.Commit == "":
		return "not recorded in this build"
	case b.Modified != nil && *b.Modified:
		return b.Commit + " with changes"
	}
	return b.Commit
}

func (b build) printTable(w io.Writer) error {
	_, err := fmt.Fprintf(w, "understudy %s\ncommit     %s\ngo         %s\nplatform   %s\ngrpc       %s\n", b.Version, b.commit(), b.Go, b.Platform, b.GRPC)
	return err
}

func versionCommand() *cobra.Command {
	command := &cobra.Command{
		Use:   "version",
		Short: "Print the version, the commit, and the versions of Go and grpc of this build",
		Long: `Prints the version of this build, its commit, and the versions of Go and grpc that it
was built with. Include this in the report of a problem.

The commit is recorded if the command was built in a clone of the repository, and not
if it was installed by "go install". With -o json, "commit" and "modified" are then
left out.`,
		Example: `  understudy version
  understudy version -o json`,
		Args: cobra.NoArgs,
	}
	wantJSON := outputFlag(command)
	command.RunE = func(cmd *cobra.Command, _ []string) error {
		asJSON, err := wantJSON()
		if err != nil {
			return err
		}
		write := thisBuild().printTable
		if asJSON {
			write = func(w io.Writer) error { return json.NewEncoder(w).Encode(thisBuild()) }
		}
		if err := write(cmd.OutOrStdout()); err != nil {
			return failure{err}
		}
		return nil
	}
	return command
}
