package org.elsewhere;

import java.util.HashMap;
import java.util.Map;
import java.util.regex.Pattern;

/** A library's cache, which holds what can be made again. */
public final class Patterns {
    private final Map<String, Pattern> made = new HashMap<>();

    public boolean matches(String pattern, String text) {
        return made.computeIfAbsent(pattern, Pattern::compile).matcher(text).matches();
    }
}
