/** {@link VisitsApplication} after its code changed: visits of bots no longer count. It has an application id of its own. */
public final class PeopleOnlyApplication {
    static final Example EXAMPLE = new Example("visits-v2", topic -> VisitsApplication.topology(topic, true));

    private PeopleOnlyApplication() {}

    public static void main(String[] arguments) throws Exception {
        EXAMPLE.main(arguments);
    }
}
