package accounts

import (
	"encoding/binary"
	"math/bits"
	"net/netip"
	"strings"
)

const maxHostLength = 255

// CanonicalHost gives the form in which the server stores a host, in lower case, or an [*InvalidError].
//
// A host is a name or an address, in which % stands for any characters and _ for any one, or an IPv4 network such as
// 10.1.0.0/255.255.0.0. (MySQL also knows 10.1.0.0/16, MariaDB does not.) localhost means the server's socket, and where it
// resolves names 127.0.0.1 too.
func CanonicalHost(host string) (string, error) {
	address, mask, isNetwork := strings.Cut(host, "/")
	switch {
	case host == "":
		return "", invalid("host", "is empty; %% stands for every host")
	case len(host) > maxHostLength:
		return "", invalid("host", "is longer than %d characters", maxHostLength)
	case isNetwork && !network(address, mask):
		return "", invalid("host", "is not an IPv4 network such as 10.1.0.0/255.255.0.0")
	case !isNetwork && strings.ContainsFunc(host, func(r rune) bool { return !inHost(r) }):
		return "", invalid("host", "may only have letters, digits, and any of . - : %% _ in it")
	}
	return strings.ToLower(host), nil
}

func inHost(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune(".-:%_", r)
}

// network says whether an address has no bit outside of its mask: for others the server lets nobody in.
func network(address, mask string) bool {
	a, err := netip.ParseAddr(address)
	if err != nil || !a.Is4() {
		return false
	}
	m, err := netip.ParseAddr(mask)
	if err != nil || !m.Is4() {
		return false
	}
	ones := binary.BigEndian.Uint32(m.AsSlice())
	prefix, err := a.Prefix(bits.LeadingZeros32(^ones))
	return err == nil && prefix.Masked().Addr() == a && ones == ^uint32(0)<<(32-prefix.Bits())
}
