package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version returns the release or the commit of this build, and its Go version.
func version() string {
	release, commit := "(unknown)", ""
	if info, ok := debug.ReadBuildInfo(); ok {
		release = info.Main.Version
		for _, setting := range info.Settings {
			switch {
			case setting.Key == "vcs.revision":
				commit = ", commit " + setting.Value
			case setting.Key == "vcs.modified" && setting.Value == "true":
				commit += " with changes"
			}
		}
	}
	return fmt.Sprintf("%s%s, %s %s/%s", release, commit, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version of this build, as --version does",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if _, err := fmt.Fprintln(cmd.OutOrStdout(), "understudy", version()); err != nil {
				return failure{err}
			}
			return nil
		},
	}
}
