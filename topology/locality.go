package topology

import (
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
)

// localityEscaper keeps the names of different localities different, whatever
// their parts hold.
var localityEscaper = strings.NewReplacer("%", "%25", "/", "%2F")

// LocalityName returns the name of a locality in paths, configurations and
// messages: region/zone/sub_zone, each with "%" and "/" percent-encoded and without
// the slashes that nothing follows, such as "us-east/a". It is "/" for a locality
// of which nothing is known, nil included.
func LocalityName(locality *corev3.Locality) string {
	name := strings.TrimRight(strings.Join([]string{
		localityEscaper.Replace(strings.ToValidUTF8(locality.GetRegion(), "\uFFFD")),
		localityEscaper.Replace(strings.ToValidUTF8(locality.GetZone(), "\uFFFD")),
		localityEscaper.Replace(strings.ToValidUTF8(locality.GetSubZone(), "\uFFFD")),
	}, "/"), "/")
	if name == "" {
		return "/"
	}
	return name
}
