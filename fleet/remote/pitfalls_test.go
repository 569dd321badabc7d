package remote

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// pitfalls lists known problems between an SSH library and a fleet, each with the tests
// that rule it out here. Names of tests in other packages begin with the name of the
// package. If there is no test, why gives the reason.
var pitfalls = []struct{ trap, tests, why string }{
	// The library.
	{"its timeout is that of TCP alone", "TestEveryPhaseOfConnectHasItsOwnDeadline TestDialHasADeadline", ""},
	{"it knows no context", "TestCancelEndsEveryPhase", ""},
	{"a session is asked for and never comes", "TestEveryPhaseOfRunHasItsOwnDeadline", ""},
	{"closing a session frees nobody", "TestASessionThatIsNotClosedClosesTheConnection", ""},
	{"it asks nobody whether he is there", "TestKeepaliveFindsAFrozenPeer", ""},
	{"it waits for the channel and not for the exit",
		"TestTheEndOfACommandIsNotTheEndOfItsOutput TestRealChildInTheBackground", ""},
	{"one stream that is not read stalls both",
		"TestAFloodIsDrainedAndBounded TestRunKeepsBothStreamsAndAllBytes TestRealFlood", ""},
	{"closing does not kill", "TestRealCommandsAreBoundedOnTheHost TestRealStop", ""},
	{"signals are not answered, and refused for root", "TestRealStop", ""},
	{"nobody answers who asks for a channel when the connection has just ended",
		"TestNobodyWaitsForAChannelOfAConnectionThatHasEnded TestNothingIsWrittenToWhoSaysNothingAnyMore", ""},
	{"an exit that was not seen", "TestRunReportsHowACommandEnded TestRealConnectionThatIsCut", ""},
	{"known keys of some types, others offered",
		"TestAHostIsKnownByItsKeysOnly TestHostKeyAlgorithmsComeFromTheKnownKeys", ""},
	{"a certificate that names nobody, of a revoked authority, signed with SHA-1",
		"TestHostsWithACertificate TestAForgedCertificateIsRefused TestRealHostCertificates", ""},
	{"@cert-authority, @revoked, hashes and ports in known_hosts",
		"TestKnownHosts TestKnownHostsHaveAuthoritiesAndRevocations", ""},
	{"known_hosts is searched line by line", "TestHostKeysAreParsedOnce", ""},
	{"algorithms that old appliances need are off, and some that nobody should use are on",
		"TestOldAppliancesNeedTheLegacyProfile TestHostKeysBySHA1NeedTheLegacyProfile TestTheLegacyProfileIsNoExcuse",
		""},
	{"RSA keys fall back to SHA-1", "TestRSAKeysSignWithSHA2", ""},
	{"no ssh_config, no ProxyJump",
		"fleet.TestSSHConfigIsImported fleet.TestSSHConfigMeansWhatSSHSays TestRealJumpHosts TestAChainOfJumpHosts",
		""},
	{"a channel through a jump host has no deadlines", "TestDeadlinesHoldBehindAJumpHost", ""},
	{"the agent is lent to hosts, or shows them all its keys",
		"TestRealCommands TestAgentsWithManyKeysShowOnlySome", ""},
	{"keys are exchanged anew under a command", "TestRealRekey TestALaterKeyExchangeSetsNoDeadline", ""},
	{"ControlMaster", "", "connections of an operator are not used"},
	{"sftp is slow and leaves holes", "TestRealUpload", ""},

	// OpenSSH.
	{"MaxSessions", "TestRealMaxSessions TestSessionsOfAConnectionAreBounded TestRealJumpHosts", ""},
	{"MaxStartups", "TestRealMaxStartups TestRealMaxStartupsStorm TestThrottledIsTriedAgainAndOnlyThat", ""},
	{"PerSourcePenalties", "TestRealPenalties TestPeersThatDoNotShakeHands " +
		"TestOneKeyIsOfferedAndARefusalIsExplained", ""},
	{"forwarding is forbidden, or by place", "TestRealJumpHostsThatRefuse TestTroubleOnTheWayIsExplained", ""},
	{"user certificates", "TestRealUserCertificates TestLoginWithACertificate", ""},

	// The network and the hosts: faults F43 to F70.
	{"F43 Redis is cut off in the middle", "muster.TestResultsWaitForARedisThatIsAway", ""},
	{"F44 the host is cut off in the middle", "TestKeepaliveFindsAFrozenPeer TestRealConnectionThatIsCut", ""},
	{"F45 answers are lost", "TestKeepaliveFindsAFrozenPeer", ""},
	{"F46 a line of some bytes a second",
		"TestEveryPhaseOfConnectHasItsOwnDeadline TestOutputKeepsASilentConnectionAlive", ""},
	{"F47 the name leads to another host", "TestRealHostWithAnotherKey", ""},
	{"F48 idle connections are forgotten on the way", "TestKeepaliveLeavesAQuietPeerAlone", ""},
	{"F49 large packets vanish", "TestEveryPhaseOfConnectHasItsOwnDeadline", ""},
	{"F50 IPv6 leads nowhere", "TestANameMayHaveAnAddressThatLeadsNowhere", ""},
	{"F51 it accepts and never speaks", "TestEveryPhaseOfConnectHasItsOwnDeadline", ""},
	{"F52 it greets byte by byte, or for ever",
		"TestEveryPhaseOfConnectHasItsOwnDeadline TestPeersThatDoNotShakeHands", ""},
	{"F53 a flood of banners", "TestBannersAreDropped", ""},
	{"F54 it hangs after the login", "TestEveryPhaseOfRunHasItsOwnDeadline", ""},
	{"F55 it closes in the middle of a command", "TestRealConnectionThatIsCut", ""},
	{"F56 no exit, or a signal", "TestRunReportsHowACommandEnded", ""},
	{"F57 exit 0 without the evidence", "scripts.TestAStepIsJudgedByWhatItSaid", ""},
	{"F58 output without end, lines without end", "TestAFloodIsDrainedAndBounded TestRealFlood", ""},
	{"F59 it takes no input", "TestEveryPhaseOfRunHasItsOwnDeadline", ""},
	{"F60 another host key", "TestAHostIsKnownByItsKeysOnly TestRealHostWithAnotherKey", ""},
	{"F61 no host key", "TestHostKeysOfAnInventoryAreChecked", ""},
	{"F62 ed25519 known, ecdsa offered first", "TestAHostIsKnownByItsKeysOnly", ""},
	{"F63 a revoked authority", "TestHostsWithACertificate", ""},
	{"F64 the user certificate ends",
		"TestCertificatesThatCannotBeUsed TestACommandMayNotOutliveTheCertificate", ""},
	{"F65 turned away", "TestRealMaxStartupsStorm TestADoorThatIsFullNarrows " +
		"TestProcessesOfANodePaceTogether muster.TestChildrenDoNotCrowdAJumpHost", ""},
	{"F66 sudo asks for a password", "TestRealPasswordsAreAskedInVain hosts.TestWhatAHostAnswersIsJudged " +
		"TestRealSudoThatRefusesHasRunNothing", ""},
	{"F67 a login shell that talks, or is no sh",
		"TestTheLineSurvivesEveryLoginShell TestTheFirstMarkIsTakenOut", ""},
	{"F68 unsolicited requests, keys too large",
		"TestUnsolicitedRequestsAndChannelsAreRefused TestHostKeysOfAnInventoryAreChecked", ""},
	{"F69 it reboots, as it should",
		"worker.TestReboots verdict.TestBootIDs muster.TestFirmwareIsInstalledBootedAndProven", ""},
	{"F70 it comes back as its twin", "TestRealHostThatSwapsItsKey", ""},

	// People and what they write: faults F82 to F87, F91.
	{"F82 nothing is selected",
		"fleet.TestBadSelectorsAreRefused fleet.TestZeroSelectorAndEmptyInventoryPickNothing", ""},
	{"F83 the selector means more hosts by now", "muster.TestATaskWhoseSelectorGrewKeepsItsHosts " +
		"muster.TestAChangedInventoryIsInForceWithoutReload", ""},
	{"F84 an id of another sort", "muster.TestScriptsOnAFleet", ""}, // ids.txtar
	{"F85 names that are options, commands, endless", "fleet.TestParseReportsEveryMistakeWithItsLine", ""},
	{"F86 arguments that are shell text", "scripts.TestNoValueIsEverRun", ""},
	{"F87 keys twice, unknown, too deep, too large", "scripts.TestParseRefusesWhatIsNotPlainYAML " +
		"fleet.TestParseReportsEveryMistakeWithItsLine fleet.TestParseBoundsItsInput", ""},
	{"F91 output that gives orders to a terminal", "TestPrintable cli.TestHostileWordsAreHarmless " +
		"tasks.TestLogsOnATerminalAreHarmless", ""},

	{"a worker is killed: before, at the started line, in the middle, behind the effect, before the report",
		"muster.TestAWorkerIsKilledAtEveryPlace muster.TestAKilledWorkersStepIsAttachedTo " +
			"muster.TestAWorkerKilledBeforeItsReportLosesNothing", ""},
	{"a connection is cut at the same places",
		"muster.TestALineIsCutAtEveryPlace TestRealRecordSurvivesEveryCut", ""},

	{"a host's clock is an hour off, or jumps in the middle", "TestRealRecordOnAHostWithAWrongClock " +
		"TestRealRecordsAreCleanedAfterAWeekOfTheQueuesClock muster.TestHostsWithAWrongClock " +
		"fleet.TestAClockOffsetIsReportedOnlyIfItIsCertain", ""},
	{"a job comes back when its record was cleaned", "TestRealRecordsAreCleanedAfterAWeekOfTheQueuesClock",
		""},

	{"a stopped worker's step comes late, beside another member of the group",
		"TestRealMarkerOfAnotherJobRefusesAStep muster.TestAStoppedWorkersLateStepIsRefusedByTheMarker", ""},

	// Uploads.
	{"a worker is killed under an upload", "TestRealUploadGoesOnWhereItWasCut TestRealRecordedUploadGoesOn " +
		"muster.TestAKilledWorkersUploadGoesOn worker.TestALostUploadContinues", ""},
	{"one that was stopped wakes up", "TestRealUploadIsRefusedBehindANewerAttempt " +
		"muster.TestAStoppedWorkersUploadIsRefused", ""},
	{"a step is at work", "TestRealUploadWaitsForTheStepAtWork", ""},
	{"the disk fills up", "TestRealUploadOnADiskThatFillsUp TestRealUploadsTheHostCannotTake", ""},
	{"what was left is another content", "TestRealUploadThatCannotGoOn", ""},
	{"nobody comes back for what was left", "TestRealUploadRemovesOldParts", ""},
	{"two bring the same at once", "TestRealUploadIsSafeFromAnOlderOne", ""},

	{"5,000 hosts behind one jump host",
		"TestThousandsBehindOneJumpHost TestSilentHostsBehindAJumpHostAreBounded", ""},
}

func TestEveryPitfallHasATest(t *testing.T) {
	t.Parallel()
	there := map[string]bool{}
	for prefix, folder := range map[string]string{"": ".", "fleet.": "..", "scripts.": "../../scripts",
		"worker.": "../../worker", "verdict.": "../../worker/verdict", "muster.": "../../cmd/muster",
		"cli.": "../../cli", "hosts.": "../../cli/hosts", "tasks.": "../../cli/tasks"} {
		files, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range files {
			file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range file.Decls {
				if f, ok := d.(*ast.FuncDecl); ok && strings.HasPrefix(f.Name.Name, "Test") {
					there[prefix+f.Name.Name] = true
				}
			}
		}
	}
	for _, p := range pitfalls {
		if (p.tests == "") == (p.why == "") {
			t.Errorf("%s: want tests, or why there are none", p.trap)
		}
		for _, name := range strings.Fields(p.tests) {
			if !there[name] {
				t.Errorf("%s: there is no test %s", p.trap, name)
			}
		}
	}
}
