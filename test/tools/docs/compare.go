package main

import (
	"strings"
)

const ellipsis = "…"

// matches compares outputs. In want, a line … matches any number of lines, and … within a line
// matches any text.
func matches(want, got []string) bool {
	if len(want) == 0 {
		return len(got) == 0
	}
	if want[0] == ellipsis {
		return matches(want[1:], got) || len(got) > 0 && matches(want, got[1:])
	}
	return len(got) > 0 && matchesLine(want[0], got[0]) && matches(want[1:], got[1:])
}

func matchesLine(want, got string) bool {
	first, rest, wild := strings.Cut(want, ellipsis)
	if !wild {
		return want == got
	}
	got, ok := strings.CutPrefix(got, first)
	for ok && strings.Contains(rest, ellipsis) {
		first, rest, _ = strings.Cut(rest, ellipsis)
		_, got, ok = strings.Cut(got, first)
	}
	return ok && strings.HasSuffix(got, rest)
}

// diff marks expected lines with - and real ones with +. Lines that match are listed once.
func diff(want, got []string) string {
	// common[i][j] is how many lines want[i:] and got[j:] have in common.
	common := make([][]int, len(want)+1)
	for i := range common {
		common[i] = make([]int, len(got)+1)
	}
	for i := len(want) - 1; i >= 0; i-- {
		for j := len(got) - 1; j >= 0; j-- {
			common[i][j] = max(common[i+1][j], common[i][j+1])
			if want[i] != ellipsis && matchesLine(want[i], got[j]) {
				common[i][j] = common[i+1][j+1] + 1
			}
		}
	}
	var text strings.Builder
	i, j := 0, 0
	skipped := false // the current lines of got match a line … of want
	for i < len(want) || j < len(got) {
		switch {
		case i < len(want) && want[i] == ellipsis:
			text.WriteString("    …\n")
			skipped = true
			i++
		case i < len(want) && j < len(got) && matchesLine(want[i], got[j]) && common[i][j] == common[i+1][j+1]+1:
			text.WriteString("    " + got[j] + "\n")
			skipped = false
			i, j = i+1, j+1
		case i < len(want) && (j == len(got) || common[i+1][j] >= common[i][j+1]):
			text.WriteString("  - " + want[i] + "\n")
			i++
		default:
			mark := "  + "
			if skipped {
				mark = "    "
			}
			text.WriteString(mark + got[j] + "\n")
			j++
		}
	}
	return text.String()
}

func lines(output string) (all []string) {
	output = strings.TrimRight(output, " \t\r\n")
	if output == "" {
		return nil
	}
	for line := range strings.SplitSeq(output, "\n") {
		all = append(all, strings.TrimRight(line, " \t\r"))
	}
	return all
}
