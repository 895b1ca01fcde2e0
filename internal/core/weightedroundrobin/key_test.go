package weightedroundrobin

import "testing"

// Two endpoints are the same if they have the same set of addresses.
func TestKeyOf(t *testing.T) {
	a, b, c := Address{Addr: "a"}, Address{Addr: "b"}, Address{Addr: "c"}
	named := Address{Addr: "a", ServerName: "n"}
	for _, test := range []struct {
		about     string
		one, two  []Address
		different bool
	}{
		{"another order", []Address{a, b, c}, []Address{c, a, b}, false},
		{"an address given twice", []Address{a}, []Address{a, a}, false},
		{"an address given twice among others", []Address{a, b}, []Address{b, a, b}, false},
		{"another address", []Address{a}, []Address{b}, true},
		{"another first address", []Address{a, c}, []Address{b, c}, true},
		{"another last address", []Address{a, b}, []Address{a, c}, true},
		{"one more", []Address{a}, []Address{a, b}, true},
		{"another server name", []Address{a}, []Address{named}, true},
		{"another server name of the last", []Address{{Addr: "0"}, a}, []Address{{Addr: "0"}, named}, true},
		{"names for the same address", []Address{a, named}, []Address{named, a}, false},
		{"a server name like the rest of a list", []Address{a, b}, []Address{{Addr: "a", ServerName: `"""b"""`}}, true},
		{"a server name with a quotation mark", []Address{{Addr: "a", ServerName: `"`}}, []Address{{Addr: "a", ServerName: `"""`}}, true},
		{"an address like a list", []Address{named}, []Address{{Addr: `"a""n"`}}, true},
		{"text that looks like two addresses", []Address{{Addr: "0"}, {Addr: `a""b`}}, []Address{{Addr: "0"}, a, b}, true},
	} {
		if different := KeyOf(test.one) != KeyOf(test.two); different != test.different {
			t.Errorf("%s: different keys = %v, want %v", test.about, different, test.different)
		}
		for _, a := range test.two {
			if is, want := KeyOf(test.one).Is(a), KeyOf(test.one) == KeyOf([]Address{a}); is != want {
				t.Errorf("%s: Is(%v) = %v, want %v", test.about, a, is, want)
			}
		}
	}
}
