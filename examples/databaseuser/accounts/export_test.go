package accounts

// NewInServersMode is New without the client's own SQL mode, to test what must hold in every mode.
func NewInServersMode(o Options) (*Client, error) { return newClient(o, "") }

// Statements returns the statements that the client sends to create an account, grant to it, and drop it.
func Statements(a Account, p Password, g Grant) (create, granted, drop string) {
	return createUser(a, p, Settings{}), grant(a, g), dropUser(a)
}

// Pattern returns a database's name as it is stored.
var Pattern = pattern
