package inorder

import (
	"strings"
	"testing"
)

func TestFind(t *testing.T) {
	long := strings.Repeat("-", 15)
	for _, test := range []struct{ list, searched, found string }{
		{"abcdef", "abcdef", "abcdef"},
		{"abcdef", "acdef", "acdef"},
		{"abcdef", "abXdef", "ab.def"},
		{"abcdef", "abXYef", "ab..ef"},
		{"abcdef", "abXcdef", "ab.cdef"},
		{"abcdef", "XYZabcdef", "...abcdef"},
		{"abcdef", "abcdefX", "abcdef."},
		{"abcdef", "bacdef", "b.cdef"},
		{"abcdef", "aabcdef", "a.bcdef"},
		{"a" + long + "b", "ab", "ab"},
		{"a" + long + "-b", "ab", "a."},
		{"", "ab", ".."},
		{"abcdef", "abXYcc", "ab..c."},
		{"abcdef", "abXYcdb", "ab..cd."},
		{"b", strings.Repeat("X", 64) + "b", strings.Repeat(".", 64) + "b"},
		{"b", strings.Repeat("X", 65) + "b", strings.Repeat(".", 66)},
	} {
		var s Search
		found := ""
		for _, c := range test.searched {
			if i := s.Find(len(test.list), func(i int) bool { return rune(test.list[i]) == c }); i >= 0 {
				found += string(test.list[i])
			} else if i == -1 {
				found += "."
			} else {
				found += "?"
			}
		}
		if found != test.found {
			t.Errorf("%q in %q: found %q, want %q", test.searched, test.list, found, test.found)
		}
	}
}
