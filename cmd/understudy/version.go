package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"

	"github.com/understudy-lb/understudy/cmd/understudy/internal/table"
)

// build is what the Go toolchain has recorded in the binary.
type build struct {
	Version  string `json:"version"`            // a release, a pseudo-version, or (devel)
	Commit   string `json:"commit,omitempty"`   // empty unless built in a clone of the repository
	Modified *bool  `json:"modified,omitempty"` // there were uncommitted changes
	Go       string `json:"go"`
	Platform string `json:"platform"`
	GRPC     string `json:"grpc"`
}

func thisBuild() build {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = new(debug.BuildInfo)
	}
	return buildOf(info)
}

func buildOf(info *debug.BuildInfo) build {
	b := build{Version: cmp.Or(info.Main.Version, "(unknown)"), Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH, GRPC: "v" + grpc.Version}
	for _, setting := range info.Settings {
		switch setting.Key {
		case "vcs.revision":
			b.Commit = setting.Value
		case "vcs.modified":
			b.Modified = new(setting.Value == "true")
		}
	}
	return b
}

func (b build) String() string {
	return fmt.Sprintf("%s, commit %s, %s %s, grpc %s", b.Version, b.commit(), b.Go, b.Platform, b.GRPC)
}

func (b build) commit() string {
	if b.Modified != nil && *b.Modified {
		return b.Commit + " with changes"
	}
	return cmp.Or(b.Commit, "not recorded in this build")
}

func (b build) rows() [][]string {
	return [][]string{{"understudy", b.Version}, {"commit", b.commit()}, {"go", b.Go}, {"platform", b.Platform}, {"grpc", b.GRPC}}
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
		Args: cobra.NoArgs,
	}
	asJSON := outputFlag(command)
	command.RunE = func(cmd *cobra.Command, _ []string) error {
		if *asJSON {
			return asFailure(json.NewEncoder(cmd.OutOrStdout()).Encode(thisBuild()))
		}
		_, err := fmt.Fprint(cmd.OutOrStdout(), table.Format(thisBuild().rows()))
		return asFailure(err)
	}
	return command
}
