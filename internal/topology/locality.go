package topology

import "strings"

// localityEscaper keeps the names of different localities different, whatever
// their parts hold.
var localityEscaper = strings.NewReplacer("%", "%25", "/", "%2F")

// LocalityName returns the name of a locality in paths, configurations and
// messages: region/zone/sub_zone, each with "%" and "/" percent-encoded and without
// the slashes that nothing follows, such as "us-east/a". It is "/" for a locality
// of which nothing is known.
func LocalityName(region, zone, subZone string) string {
	name := strings.TrimRight(strings.Join([]string{
		localityEscaper.Replace(strings.ToValidUTF8(region, "\uFFFD")),
		localityEscaper.Replace(strings.ToValidUTF8(zone, "\uFFFD")),
		localityEscaper.Replace(strings.ToValidUTF8(subZone, "\uFFFD")),
	}, "/"), "/")
	if name == "" {
		return Nowhere
	}
	return name
}

// Nowhere is the name of a locality of which nothing is known.
const Nowhere = "/"
